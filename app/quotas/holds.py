"""Rows of databases that get fewer connections than their limit for now, because their host is short of them."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from uuid import UUID

import msgspec

from app.store.session import execute, fetch_all, fetch_exists, fetch_value, fetch_values


class HeldDatabase(msgspec.Struct, frozen=True, kw_only=True):
    """A database on a host that has sessions, or is held."""

    id: int
    uuid: UUID
    engine_name: str
    team_id: int | None
    connections: int
    at_most: int | None
    applied: bool
    """It was set on the engine not long ago."""


_ON_HOST = """
SELECT d.id, d.uuid, d.engine_name, d.team_id, d.connections, h.at_most,
       coalesce(h.applied_at > now() - $3::interval, false) AS applied
FROM databases d LEFT JOIN connection_holds h ON h.database_id = d.id
WHERE d.host_id = $1 AND d.destroyed_at IS NULL AND (d.engine_name = any($2::text[]) OR h.id IS NOT NULL)
ORDER BY d.id
"""
_WRITE = """
WITH written AS (
    INSERT INTO connection_holds AS h (database_id, at_most)
    SELECT * FROM unnest($1::bigint[], $2::integer[]) AS s (database_id, at_most) ORDER BY 1
    ON CONFLICT (database_id) DO UPDATE SET at_most = excluded.at_most, applied_at = NULL
    RETURNING h.database_id, h.xmax = 0 AS new
)
SELECT database_id FROM written WHERE new
"""


async def on_host(host_id: int, names: Sequence[str], again: timedelta) -> list[HeldDatabase]:
    """The host's databases of these names, and those that are held. `applied` means within the time `again`."""
    return await fetch_all(HeldDatabase, _ON_HOST, host_id, list(names), again)


async def any_on_host(host_id: int) -> bool:
    return await fetch_exists(
        "SELECT 1 FROM connection_holds h JOIN databases d ON d.id = h.database_id WHERE d.host_id = $1 LIMIT 1",
        host_id,
    )


async def write(at_most: Mapping[int, int]) -> list[int]:
    """Writes how many connections databases get, before that is set on the engine. Returns the ids of those that were
    not held until now."""
    return await fetch_values(int, _WRITE, list(at_most), list(at_most.values()))


async def find(database_id: int) -> int | None:
    """How many connections the database gets; None where it is not held."""
    return await fetch_value(int, "SELECT at_most FROM connection_holds WHERE database_id = $1", database_id)


async def note_applied(database_id: int, at_most: int) -> None:
    await execute(
        "UPDATE connection_holds SET applied_at = now() WHERE database_id = $1 AND at_most = $2", database_id, at_most
    )


async def delete(database_id: int) -> bool:
    """Deletes the row of a database, after the engine has its limit again, or has the database no more. False where it
    was not held."""
    return bool(await execute("DELETE FROM connection_holds WHERE database_id = $1", database_id))


async def delete_destroyed(host_id: int) -> None:
    """Deletes the rows that a look at the host wrote while their databases were destroyed. No engine has anything of
    them."""
    await execute(
        "DELETE FROM connection_holds h USING databases d"
        " WHERE d.id = h.database_id AND d.host_id = $1 AND d.destroyed_at IS NOT NULL",
        host_id,
    )
