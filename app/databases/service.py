"""What clients do to databases. Every function that changes something belongs in the request's transaction, and
returns the workflow that the change asks for, to be started after the commit."""

from datetime import timedelta
from uuid import UUID

import msgspec
from msgspec import UNSET

from app.auth.principal import Principal
from app.contracts.base import DatabaseStatus, Engine
from app.contracts.databases import (
    ApplyLimits,
    ApplyLimitsInput,
    DeleteDatabase,
    DeleteDatabaseInput,
    ProvisionDatabase,
    ProvisionDatabaseInput,
)
from app.contracts.queues import delete_workflow_id, limits_workflow_id, provision_workflow_id
from app.core.clock import utc_now
from app.core.errors import CapacityExhausted, InvalidField, NotFound
from app.core.ids import engine_name, engine_password, new_uuid
from app.core.secrets import SecretBox
from app.databases import records
from app.databases.lifecycle import note_deleted, placement_of
from app.databases.records import DatabaseRecord
from app.databases.schemas import ChangeQuotas, CreateDatabase
from app.databases.views import masked_view
from app.dispatch.starts import INTERACTIVE, Accepted, request_start
from app.engines.placement import HostLoad
from app.events import outbox
from app.events.types import EventType
from app.hosts.adapters import password_place
from app.hosts.loads import loads_of, place
from app.plans.plans import check_plan, check_quotas, limits_in_force
from app.store.session import fetch, fetch_one


class _Team(msgspec.Struct, frozen=True):
    id: int
    name: str
    tier: str


async def create(box: SecretBox, principal: Principal, request: CreateDatabase) -> Accepted:
    """Raises `InvalidField`, `PlanLimitExceeded` or `CapacityExhausted`."""
    engine = request.db_type
    team = await _team_for_create(principal, request)
    check_quotas(team.tier, request.plan, request.quotas)
    connections = limits_in_force(request.plan, request.quotas).connection_hard_limit
    host = await _place(engine, None if request.region is UNSET else request.region, connections)
    uuid = await _insert(box, principal, request, team, host, connections)
    record = await get_any(uuid)
    await outbox.append(
        EventType.DATABASE_PROVISIONING_STARTED,
        team_id=team.id,
        database_id=record.id,
        data=masked_view(record),
    )
    start = await request_start(
        ProvisionDatabase,
        provision_workflow_id(uuid),
        ProvisionDatabaseInput(
            database=uuid,
            engine=engine,
            region=host.region,
            team_id=team.id,
            placement=placement_of(record),
        ),
        priority=INTERACTIVE,
    )
    return Accepted(subject=str(uuid), start=start)


async def get(principal: Principal, database: UUID) -> DatabaseRecord:
    """Raises `NotFound`."""
    record = await records.find_owned(database, principal.team_ids)
    if record is None:
        raise NotFound("database")
    return record


async def get_any(database: UUID) -> DatabaseRecord:
    """The row in whatever state. Raises `NotFound` when there never was one."""
    record = await records.find(database)
    if record is None:
        raise NotFound("database")
    return record


async def list_page(
    principal: Principal, *, starting_after: UUID | None, limit: int
) -> tuple[list[DatabaseRecord], bool]:
    """A page, newest first, and whether more follows. Raises `InvalidField` for a cursor that is unknown or
    not the caller's; that of a database deleted since still works."""
    page = await records.list_owned(principal.team_ids, after=starting_after, limit=limit + 1)
    if not page and starting_after is not None and not await records.was_owned(starting_after, principal.team_ids):
        raise InvalidField("starting_after", "This is not the uuid of a database of yours.")
    return page[:limit], len(page) > limit


async def rename(principal: Principal, database: UUID, name: str) -> Accepted:
    """Only our own row changes: the name on the host is opaque. Raises `NotFound`."""
    record = await _owned_for_update(principal, database)
    await fetch("UPDATE databases SET name = $2, updated_at = now() WHERE id = $1", record.id, name)
    return Accepted(subject=str(database))


async def change_quotas(principal: Principal, database: UUID, change: ChangeQuotas) -> Accepted:
    """Raises `NotFound`, `PlanLimitExceeded`, or `InvalidField` when the host has no room for more connections."""
    record = await _owned_for_update(principal, database)
    team = await _team(record.team_id)
    quotas = change.over(record.quotas)
    check_quotas(team.tier, record.plan, quotas)
    connections = limits_in_force(record.plan, quotas).connection_hard_limit
    if connections > record.connections:
        await _check_room(record, connections)
    rows = await fetch(
        """
        UPDATE databases SET storage_hard_limit_gb = $2, connection_hard_limit = $3, warning_threshold_pct = $4,
               connections = $5, limits_revision = limits_revision + 1, updated_at = now()
        WHERE id = $1 RETURNING limits_revision
        """,
        record.id,
        quotas.storage_hard_limit_gb,
        quotas.connection_hard_limit,
        quotas.warning_threshold_pct,
        connections,
    )
    revision: int = rows[0]["limits_revision"]
    start = await request_start(
        ApplyLimits,
        limits_workflow_id(database, revision),
        ApplyLimitsInput(
            database=database,
            engine=record.engine,
            region=record.region,
            team_id=record.team_id,
            revision=revision,
        ),
        priority=INTERACTIVE,
    )
    return Accepted(subject=str(database), start=start)


async def delete(principal: Principal, database: UUID, grace: timedelta) -> Accepted:
    """Marks it deleted. Access ends when the workflow has revoked it, which the caller waits for. Raises
    `NotFound`."""
    record = await _owned_for_update(principal, database)
    provisioning = record.status is DatabaseStatus.PROVISIONING
    # A database that never became active holds nothing worth keeping.
    destroy_at = utc_now() if provisioning else utc_now() + grace
    await note_deleted(record, destroy_at=destroy_at, cancelled_jobs=int(provisioning))
    start = await request_start(
        DeleteDatabase,
        delete_workflow_id(database),
        DeleteDatabaseInput(
            database=database,
            engine=record.engine,
            region=record.region,
            team_id=record.team_id,
            destroy_at=destroy_at,
            cancel_provisioning=provisioning,
        ),
        priority=INTERACTIVE,
    )
    return Accepted(subject=str(database), start=start)


async def _owned_for_update(principal: Principal, database: UUID) -> DatabaseRecord:
    record = await records.find_owned(database, principal.team_ids, lock=True)
    if record is None:
        raise NotFound("database")
    return record


async def _team(team_id: int, *, lock: bool = False) -> _Team:
    query = "SELECT id, name, tier FROM teams WHERE id = $1"
    team = await fetch_one(_Team, f"{query} FOR NO KEY UPDATE" if lock else query, team_id)
    assert team is not None, "a membership or a database names a team that exists"
    return team


async def _team_for_create(principal: Principal, request: CreateDatabase) -> _Team:
    asked = request.team_id
    if isinstance(asked, int) and asked not in principal.team_ids:
        raise InvalidField("team_id", "This is not a team of yours.")
    if not principal.team_ids:
        raise InvalidField("team_id", "You are in no team that could own the database.")
    team = await _team(asked if isinstance(asked, int) else principal.team_ids[0])
    if team.tier == "free":
        # Locked, so that two creates at once don't both find room for the one database.
        team = await _team(team.id, lock=True)
    rows = await fetch("SELECT count(*) FROM databases WHERE team_id = $1 AND status <> 'deleted'", team.id)
    check_plan(team.tier, request.plan, rows[0]["count"])
    return team


async def _place(engine: Engine, region: str | None, connections: int) -> HostLoad:
    rows = await fetch(
        "SELECT region, bool_and(draining) AS closed FROM engine_hosts WHERE engine = $1"
        " GROUP BY region ORDER BY region",
        engine,
    )
    regions = [row["region"] for row in rows]
    if region is not None and region not in regions:
        served = f"It is served in {', '.join(regions)}." if regions else "It is served nowhere."
        raise InvalidField("region", f"{engine.value} is not served in {region!r}. {served}")
    if not regions:
        raise InvalidField("db_type", f"No host serves {engine.value}.")
    host = await place(engine, region, connections)
    if host is None:
        where = region or "any region"
        if all(row["closed"] for row in rows if region in (None, row["region"])):
            raise CapacityExhausted(f"No {engine.value} host in {where} takes new databases.", field="region")
        raise CapacityExhausted(
            f"No {engine.value} host in {where} has room for a database with {connections} connections.",
            field="region" if region else "connection_hard_limit",
        )
    return host


async def _check_room(record: DatabaseRecord, connections: int) -> None:
    await fetch("SELECT 1 FROM engine_hosts WHERE id = $1 FOR NO KEY UPDATE", record.host_id)
    load = (await loads_of([record.host_id]))[0]
    room = load.connection_capacity - load.connections + record.connections
    if connections > room:
        raise InvalidField("connection_hard_limit", f"The database's host has room for {room} connections.")


async def _insert(
    box: SecretBox,
    principal: Principal,
    request: CreateDatabase,
    team: _Team,
    host: HostLoad,
    connections: int,
) -> UUID:
    uuid = new_uuid()
    await fetch(
        """
        INSERT INTO databases (uuid, team_id, created_by_id, name, engine, region, plan, status, host_id,
                               engine_name, password_sealed, storage_hard_limit_gb, connection_hard_limit,
                               warning_threshold_pct, connections)
        VALUES ($1, $2, $3, $4, $5, $6, $7, 'provisioning', $8, $9, $10, $11, $12, $13, $14)
        """,
        uuid,
        team.id,
        principal.user_id,
        request.name,
        request.db_type,
        host.region,
        request.plan,
        host.id,
        engine_name(),
        box.seal(engine_password(), password_place(uuid)),
        request.storage_hard_limit_gb,
        request.connection_hard_limit,
        request.warning_threshold_pct,
        connections,
    )
    return uuid
