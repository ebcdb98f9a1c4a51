"""Re-encrypting sealed values with the current key, so that an older key can be retired."""

from collections.abc import AsyncGenerator

import msgspec

from app.core.secrets import InvalidSecret, SecretBox, SecretLocation
from app.store.session import fetch

_BATCH = 200


class SealedColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column that holds sealed values. `row` is a SQL expression over the table (as `s`) that gives
    `SecretLocation.row`. Each folder declares the columns of its own tables."""

    table: str
    column: str
    row: str

    @property
    def name(self) -> str:
        return f"{self.table}.{self.column}"


class Resealed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one batch."""

    done: int
    unreadable: tuple[str, ...]
    """Rows, as `table.column id`, whose value no configured key can open."""


async def reseal(box: SecretBox, column: SealedColumn) -> AsyncGenerator[Resealed]:
    """Reseals in batches, each value by itself; after a crash the next call continues. A value that changes
    meanwhile is left alone, and a later call finds it if necessary."""
    last = 0
    while rows := await fetch(
        f"SELECT s.id, {column.row} AS place, s.{column.column} AS sealed FROM {column.table} s"  # noqa: S608  constants
        f" WHERE s.id > $1 AND substr(s.{column.column}, 1, length($2::bytea)) <> $2 ORDER BY s.id LIMIT {_BATCH}",
        last,
        box.newest + b"\x00",
    ):
        done, unreadable = 0, []
        for row in rows:
            place = SecretLocation(column.table, column.column, row["place"])
            try:
                fresh = box.seal(box.open(row["sealed"], place), place)
            except InvalidSecret:
                unreadable.append(f"{column.name} {row['id']}")
                continue
            done += len(
                await fetch(
                    f"UPDATE {column.table} SET {column.column} = $3"  # noqa: S608  constants
                    f" WHERE id = $1 AND {column.column} = $2 RETURNING 1",
                    row["id"],
                    row["sealed"],
                    fresh,
                )
            )
        last = rows[-1]["id"]
        yield Resealed(done=done, unreadable=tuple(unreadable))


async def values_by_key(column: SealedColumn) -> dict[str, int]:
    """The number of values sealed with each key."""
    rows = await fetch(
        f"SELECT encode(substr({column.column}, 1, position('\\x00'::bytea IN {column.column}) - 1), 'escape') AS key,"  # noqa: S608
        f" count(*) AS number FROM {column.table} WHERE {column.column} IS NOT NULL GROUP BY 1"
    )
    return {row["key"]: row["number"] for row in rows}
