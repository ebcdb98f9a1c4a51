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


_CURSOR = "SELECT id FROM operations WHERE uuid = $2 AND team_id = any($1)"
_FROM_NEWEST = f"CASE WHEN $2::uuid IS NULL THEN 9223372036854775807 ELSE ({_CURSOR}) END"

# A page is read off one index, team by team, or database by database where one is named.
_PAGE = """
SELECT {columns} FROM unnest($1::bigint[]) AS mine (team_id)
CROSS JOIN LATERAL (
    SELECT * FROM operations WHERE team_id = mine.team_id AND {scope} ORDER BY {order} LIMIT $3
) o
JOIN databases d ON d.id = o.database_id
ORDER BY o.id DESC LIMIT $3
"""
_OF_TEAM = _PAGE.format(columns=COLUMNS, order="-id", scope=f"-id > -{_FROM_NEWEST}")
_OF_DATABASE = _PAGE.format(
    columns=COLUMNS,
    order="id DESC",
    scope=f"database_id = (SELECT id FROM databases WHERE uuid = $4) AND id < {_FROM_NEWEST}",  # noqa: S608 - our own words
)

# With filters, a page of each type and status that match, off one index for both: of what hardly ever meets no more is
# read than of what always does. `0 - id` is the order of these indexes alone, so that no plan takes another one, which
# may have to be walked to its end.
_FILTERED = """
SELECT {columns} FROM (
    SELECT found.* FROM {scopes} CROSS JOIN unnest($4::text[]) AS of (type) CROSS JOIN unnest($5::text[]) AS at (status)
    CROSS JOIN LATERAL (
        SELECT * FROM operations WHERE {scope} AND type = of.type AND status = at.status AND 0 - id > 0 - {newest}
        ORDER BY 0 - id LIMIT $3
    ) found
    ORDER BY found.id DESC LIMIT $3
) o
JOIN databases d ON d.id = o.database_id
WHERE o.team_id = any($1)
ORDER BY o.id DESC
"""
_FILTERED_OF_TEAM = _FILTERED.format(
    columns=COLUMNS,
    scopes="unnest($1::bigint[]) AS mine (team_id)",
    scope="team_id = mine.team_id",
    newest=_FROM_NEWEST,
)
_FILTERED_OF_DATABASE = _FILTERED.format(
    columns=COLUMNS,
    scopes="(SELECT id FROM databases WHERE uuid = $6 AND team_id = any($1)) AS mine",
    scope="database_id = mine.id",
    newest=_FROM_NEWEST,
)


async def list_owned(
    team_ids: list[int], filters: OperationFilters, *, after: UUID | None, limit: int
) -> list[OperationRecord]:
    """These teams' operations, newest first, from the one that follows `after` on; none when that is not theirs."""
    of_database = () if filters.database is None else (filters.database,)
    if filters.type is None and filters.status is None:
        statement = _OF_DATABASE if of_database else _OF_TEAM
        return await fetch_all(OperationRecord, statement, team_ids, after, limit, *of_database)
    statement = _FILTERED_OF_DATABASE if of_database else _FILTERED_OF_TEAM
    types = list(OperationType) if filters.type is None else [filters.type]
    statuses = list(OperationStatus) if filters.status is None else [filters.status]
    return await fetch_all(OperationRecord, statement, team_ids, after, limit, types, statuses, *of_database)


async def team_of(operation: UUID, team_ids: list[int]) -> int | None:
    """Which of these teams has the operation."""
    return await fetch_value(
        int, "SELECT team_id FROM operations WHERE uuid = $1 AND team_id = any($2::bigint[])", operation, team_ids
    )
