"""The databases of all teams, for the operator's lists and counts."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec

from app.contracts.base import DatabaseStatus, Engine
from app.core.errors import InvalidField, NotFound, require_found
from app.databases.filters import DatabaseFilters, conditions
from app.store.columns import columns_of
from app.store.session import fetch_all, fetch_one
from app.store.tables.databases import Database

SHORTEST_PREFIX = 4
"""The least characters of a uuid that identify a database."""
_NAMED = 5
"""The maximum of candidates in the answer to an ambiguous reference."""


class DatabaseSummary(msgspec.Struct, kw_only=True):
    """The most informative columns come first, because a narrow terminal shows only those."""

    uuid: UUID
    name: str
    team: str | None
    """None in the warm pool."""
    engine: Engine
    status: DatabaseStatus
    storage_bytes: int | None
    """None until it was measured."""
    plan: str
    region: str
    host_id: int
    address: str
    created_at: datetime


class DatabaseDetails(DatabaseSummary, kw_only=True):
    """Everything recorded about a database, except secrets."""

    team_id: int | None
    engine_name: str
    connections: int
    limits_revision: int
    limits_applied: int
    paused_reason: str | None
    """`operator`, `runtime` or `storage`; None for a paused database that is resuming."""
    frozen_at: datetime | None
    """Since when it may read, delete and drop, but not write."""
    access_revision: int
    access_applied: int
    """The engine is up to date when this equals `access_revision`."""
    measured_at: datetime | None
    runtime_seconds: float | None
    """In the month in which it was last measured."""
    remote_since: datetime | None
    provisioned_at: datetime | None
    deletion_protection: bool
    labels: list[str]
    expires_at: datetime | None
    """When it deletes itself."""
    expiry_announced_at: datetime | None
    deleted_at: datetime | None
    """None for one that was undeleted."""
    deletion_revision: int
    revoked_at: datetime | None
    destroy_at: datetime | None
    destroyed_at: datetime | None


class RetainedDatabase(msgspec.Struct, kw_only=True):
    """A deleted database of a team that can be undeleted."""

    uuid: UUID
    name: str
    team: str
    engine: Engine
    destroy_at: datetime
    deleted_at: datetime
    storage_bytes: int | None
    plan: str
    region: str
    address: str


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Selects databases; None doesn't restrict."""

    team: str | None = None
    """A team's id or full name."""
    name: str | None = None
    """A part of the name, in upper or lower case."""
    like: DatabaseFilters = DatabaseFilters()
    """What clients narrow their lists to."""
    host: str | None = None
    """A host's id or its `host:port`."""
    with_destroyed: bool = False
    pooled: bool = False
    """Selects the databases of the warm pool instead of those of teams."""


class Sort(StrEnum):
    CREATED = "created"
    """Newest first."""
    NAME = "name"
    TEAM = "team"
    STORAGE = "storage"
    """Largest first."""


class Grouping(StrEnum):
    """The property by which databases are counted."""

    TEAM = "team"
    STATUS = "status"
    ENGINE = "engine"
    REGION = "region"
    PLAN = "plan"
    HOST = "host"


class DatabaseCount(msgspec.Struct, kw_only=True):
    group: str | None
    """None for the warm pool, when grouped by team."""
    databases: int
    storage_bytes: int
    """As last measured. A database that was never measured adds nothing."""
    connections: int
    """The sum of their connection limits."""


_FROM = """
FROM databases d LEFT JOIN teams t ON t.id = d.team_id JOIN engine_hosts h ON h.id = d.host_id
LEFT JOIN database_usage u ON u.database_id = d.id
"""
_SELECT = f"""
SELECT {columns_of(Database, "d")},
       t.name AS team, h.host || ':' || h.port AS address, u.storage_bytes, u.measured_at, u.runtime_seconds
{_FROM}
"""
_WHERE = f"""
WHERE (d.team_id IS NULL) = $1 AND ($2 OR d.destroyed_at IS NULL)
  AND ($3::text IS NULL OR t.name = $3 OR t.id::text = $3)
  AND ($4::text IS NULL OR position(lower($4) IN lower(d.name)) > 0)
  AND ($5::text IS NULL OR h.id::text = $5 OR h.host || ':' || h.port = $5)
  AND {conditions(6)}
"""
_ORDER = {
    Sort.CREATED: "d.position DESC",
    Sort.NAME: "d.name, d.position DESC",
    Sort.TEAM: "t.name, d.name, d.position DESC",
    Sort.STORAGE: "u.storage_bytes DESC NULLS LAST, d.position DESC",
}
_GROUP = {
    Grouping.TEAM: "t.name",
    Grouping.STATUS: "d.status",
    Grouping.ENGINE: "d.engine",
    Grouping.REGION: "d.region",
    Grouping.PLAN: "d.plan",
    Grouping.HOST: "h.host || ':' || h.port",
}
_COUNTED = """
count(*) AS databases, coalesce(sum(u.storage_bytes), 0)::bigint AS storage_bytes,
coalesce(sum(d.connections) FILTER (WHERE d.status <> 'deleted'), 0)::bigint AS connections
"""


async def list_databases(
    filters: Filters, sort: Sort = Sort.CREATED, limit: int | None = None
) -> list[DatabaseSummary]:
    """The matching databases; all of them when `limit` is None."""
    query = f"{_SELECT} {_WHERE} ORDER BY {_ORDER[sort]} LIMIT $12"
    return await fetch_all(DatabaseSummary, query, *_values(filters), limit)


async def list_retained(filters: Filters) -> list[RetainedDatabase]:
    """The matching deleted databases that can be undeleted, the one first that was deleted last."""
    retained = (
        "d.status = 'deleted' AND d.destroyed_at IS NULL AND d.destroy_at > now() AND d.cancelled_provision_jobs = 0"
    )
    query = f"{_SELECT} {_WHERE} AND {retained} ORDER BY d.deleted_at DESC, d.id DESC"
    return await fetch_all(RetainedDatabase, query, *_values(filters))


async def count_databases(filters: Filters) -> DatabaseCount:
    """The totals of all matching databases, as one group without a name."""
    counted = await fetch_one(DatabaseCount, f"SELECT NULL AS group, {_COUNTED} {_FROM} {_WHERE}", *_values(filters))
    assert counted is not None, "a count has always one row"
    return counted


async def count_by(filters: Filters, grouping: Grouping) -> list[DatabaseCount]:
    """The totals of each group of matching databases, the largest group first."""
    group = _GROUP[grouping]
    query = f'SELECT {group} AS "group", {_COUNTED} {_FROM} {_WHERE} GROUP BY {group} ORDER BY 2 DESC, 1'
    return await fetch_all(DatabaseCount, query, *_values(filters))


async def get_details(database: UUID) -> DatabaseDetails:
    """Raises `NotFound`."""
    found = require_found(await fetch_one(DatabaseDetails, f"{_SELECT} WHERE d.uuid = $1", database), "database")
    if found.status is not DatabaseStatus.DELETED:
        found.deleted_at = None
    return found


class _Candidate(msgspec.Struct, frozen=True):
    uuid: UUID
    name: str
    team: str | None
    status: DatabaseStatus
    matches: int
    """How many databases match altogether."""


async def resolve(reference: str, *, deleted: bool | None = False) -> UUID:
    """Finds the database by its uuid, the beginning of its uuid, or its name.

    A complete uuid is returned as it is. Otherwise destroyed databases don't count; deleted ones count only if
    `deleted` is true, live ones only if it is false, both if it is None. Raises `NotFound`, and `InvalidField` with the
    candidates when several match.
    """
    try:
        return UUID(reference)
    except ValueError:
        pass
    found = await fetch_all(
        _Candidate,
        """
        SELECT d.uuid, d.name, t.name AS team, d.status, count(*) OVER () AS matches
        FROM databases d LEFT JOIN teams t ON t.id = d.team_id
        WHERE d.destroyed_at IS NULL AND ($2::boolean IS NULL OR (d.status = 'deleted') = $2)
          AND ((d.name = $1 AND d.team_id IS NOT NULL) OR (length($1) >= $3 AND starts_with(d.uuid::text, lower($1))))
        ORDER BY d.position DESC LIMIT $4
        """,
        reference,
        deleted,
        SHORTEST_PREFIX,
        _NAMED,
    )
    if not found:
        raise NotFound("database")
    if len(found) > 1:
        raise InvalidField("database", _ambiguous(reference, found))
    return found[0].uuid


def _values(filters: Filters) -> tuple[Any, ...]:
    return (
        filters.pooled,
        filters.with_destroyed,
        filters.team,
        filters.name,
        filters.host,
        *filters.like.values,
    )


def _ambiguous(reference: str, found: list[_Candidate]) -> str:
    lines = [f"  {one.uuid}  {one.name} ({one.team or 'warm pool'}, {one.status.value})" for one in found]
    more = found[0].matches - len(found)
    if more:
        lines.append(f"  and {more} more")
    return "\n".join([f"{reference!r} means {found[0].matches} databases; give the uuid of one:", *lines])
