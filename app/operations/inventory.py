"""The operations of all teams, for operators."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from app.core.errors import InvalidField, NotFound
from app.operations.kinds import OperationStatus, OperationType
from app.operations.records import COLUMNS, OperationRecord
from app.store.session import fetch_all, fetch_one, fetch_scalar, fetch_values

SHORTEST_PREFIX = 4
"""The least characters of a uuid that identify an operation."""


class OperationLine(msgspec.Struct, kw_only=True):
    """The most informative columns come first, because a narrow terminal shows only those."""

    uuid: UUID
    type: OperationType
    status: OperationStatus
    database: str
    team: str
    overdue: bool
    step: str | None
    """The first step that is not done; None where all are."""
    reason: str | None
    created_at: datetime
    finished_at: datetime | None
    database_uuid: UUID
    workflow_id: str | None


class OperatorRecord(OperationRecord, frozen=True, kw_only=True):
    """An operation with its team's name."""

    team_name: str
    overdue: bool


class OperatorFilters(msgspec.Struct, frozen=True, kw_only=True):
    """None lets all pass."""

    team: str | None = None
    """A team's id or full name."""
    database: UUID | None = None
    status: OperationStatus | None = None
    type: OperationType | None = None
    open: bool = False
    """Only those that have not ended."""
    overdue: bool = False


_FROM = "FROM operations o JOIN databases d ON d.id = o.database_id JOIN teams t ON t.id = o.team_id"
_OVERDUE = "o.finished_at IS NULL AND coalesce(o.deadline_at < now(), false)"
_WHERE = f"""
WHERE ($1::text IS NULL OR t.name = $1 OR t.id::text = $1) AND ($2::uuid IS NULL OR d.uuid = $2)
  AND ($3::text IS NULL OR o.status = $3) AND ($4::text IS NULL OR o.type = $4)
  AND (NOT $5 OR o.finished_at IS NULL) AND (NOT $6 OR {_OVERDUE})
"""
_LINES = f"""
SELECT o.uuid, o.type, o.status, d.name AS database, t.name AS team, {_OVERDUE} AS overdue,
       (SELECT step ->> 'name' FROM jsonb_array_elements(o.steps) WITH ORDINALITY AS one (step, place)
        WHERE step ->> 'status' NOT IN ('succeeded', 'skipped') ORDER BY place LIMIT 1) AS step,
       o.reason ->> 'message' AS reason, o.created_at, o.finished_at, d.uuid AS database_uuid, o.workflow_id
{_FROM} {_WHERE} ORDER BY o.id DESC LIMIT $7
"""  # noqa: S608 - our own words
_RECORDS = f"SELECT {COLUMNS}, t.name AS team_name, {_OVERDUE} AS overdue {_FROM}"
_PAGE = f"""
{_RECORDS} {_WHERE} AND ($7::uuid IS NULL OR o.id < (SELECT id FROM operations WHERE uuid = $7))
ORDER BY o.id DESC LIMIT $8
"""  # noqa: S608 - our own words
_COUNT = f"SELECT count(*) {_FROM} {_WHERE}"


async def list_lines(filters: OperatorFilters, limit: int | None = None) -> list[OperationLine]:
    """The matching operations, newest first; all of them when `limit` is None."""
    return await fetch_all(OperationLine, _LINES, *_values(filters), limit)


async def list_page(filters: OperatorFilters, *, after: UUID | None, limit: int) -> list[OperatorRecord]:
    """The matching operations, newest first, from the one that follows `after` on; none when there is no such
    operation."""
    return await fetch_all(OperatorRecord, _PAGE, *_values(filters), after, limit)


async def find(operation: UUID) -> OperatorRecord | None:
    return await fetch_one(OperatorRecord, f"{_RECORDS} WHERE o.uuid = $1", operation)


async def count(filters: OperatorFilters) -> int:
    return await fetch_scalar(int, _COUNT, *_values(filters))


async def resolve(reference: str) -> UUID:
    """Finds the operation by its uuid or the beginning of it. A complete uuid is returned as it is. Raises `NotFound`,
    and `InvalidField` when several match."""
    try:
        return UUID(reference)
    except ValueError:
        pass
    found = await fetch_values(
        UUID,
        "SELECT uuid FROM operations WHERE length($1) >= $2 AND starts_with(uuid::text, lower($1)) LIMIT 2",
        reference,
        SHORTEST_PREFIX,
    )
    if not found:
        raise NotFound("operation")
    if len(found) > 1:
        raise InvalidField("operation", f"{reference!r} means several operations; give more of the uuid.")
    return found[0]


def _values(filters: OperatorFilters) -> tuple[Any, ...]:
    return (
        filters.team,
        filters.database,
        None if filters.status is None else filters.status.value,
        None if filters.type is None else filters.type.value,
        filters.open,
        filters.overdue,
    )
