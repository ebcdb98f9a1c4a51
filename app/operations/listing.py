"""Pages of operations, newest first."""

from uuid import UUID

import msgspec

from app.operations.kinds import OperationStatus, OperationType
from app.operations.records import COLUMNS, OperationRecord
from app.store.session import fetch_all, fetch_value


class OperationFilters(msgspec.Struct, frozen=True, kw_only=True):
    """None lets all pass."""

    database: UUID | None = None
    status: OperationStatus | None = None
    type: OperationType | None = None


# A page is read off one index, team by team, or database by database where one is named.
_PAGE = """
SELECT {columns} FROM unnest($1::bigint[]) AS mine (team_id)
CROSS JOIN LATERAL (
    SELECT * FROM operations
    WHERE team_id = mine.team_id AND ($3::text IS NULL OR status = $3) AND ($4::text IS NULL OR type = $4) AND {scope}
    ORDER BY {order} LIMIT $5
) o
JOIN databases d ON d.id = o.database_id
ORDER BY o.id DESC LIMIT $5
"""
_CURSOR = "SELECT id FROM operations WHERE uuid = $2 AND team_id = any($1)"
_FROM_NEWEST = f"CASE WHEN $2::uuid IS NULL THEN 9223372036854775807 ELSE ({_CURSOR}) END"
_OF_TEAM = _PAGE.format(columns=COLUMNS, order="-id", scope=f"-id > -{_FROM_NEWEST}")
_OF_DATABASE = _PAGE.format(
    columns=COLUMNS,
    order="id DESC",
    scope=f"database_id = (SELECT id FROM databases WHERE uuid = $6) AND id < {_FROM_NEWEST}",  # noqa: S608 - our own words
)


async def list_owned(
    team_ids: list[int], filters: OperationFilters, *, after: UUID | None, limit: int
) -> list[OperationRecord]:
    """These teams', newest first, from the one that follows `after` on; none when that is not theirs."""
    asked = (team_ids, after, _value(filters.status), _value(filters.type), limit)
    if filters.database is None:
        return await fetch_all(OperationRecord, _OF_TEAM, *asked)
    return await fetch_all(OperationRecord, _OF_DATABASE, *asked, filters.database)


async def team_of(operation: UUID, team_ids: list[int]) -> int | None:
    """Which of these teams has it."""
    return await fetch_value(
        int, "SELECT team_id FROM operations WHERE uuid = $1 AND team_id = any($2::bigint[])", operation, team_ids
    )


def _value(choice: OperationStatus | OperationType | None) -> str | None:
    return None if choice is None else choice.value
