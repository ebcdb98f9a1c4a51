"""What a client's create does, in the request's transaction."""

from time import perf_counter
from uuid import UUID

import msgspec
from msgspec import UNSET

from app.applications.queue import start_next
from app.applications.service import UNDER_WAY, Plan, add, plan_at_creation
from app.auth.principal import Principal
from app.auth.teams import Team
from app.contracts.base import Engine
from app.contracts.databases import ProvisionDatabaseInput
from app.core.errors import CapacityExhausted, InvalidField
from app.core.ids import engine_name, engine_password, new_uuid
from app.core.secrets import SecretBox
from app.databases import records
from app.databases.limits import request_limits
from app.databases.passwords import password_place
from app.databases.records import DatabaseRecord
from app.databases.retention import check_held
from app.databases.schemas import CreateDatabase
from app.databases.views import masked_view
from app.engines.placement import HostLoad
from app.outbox import events
from app.outbox.event_types import EventType
from app.outbox.provisionings import request_provisioning
from app.outbox.workflow_starts import INTERACTIVE, Accepted
from app.pool.claim import Wish, claim, note_claim
from app.pool.eviction import place_with_room_made
from app.provisioning.teams import team_for_create
from app.quotas.bounds import check_bound
from app.quotas.plans import check_quotas, limits_in_force
from app.store.session import fetch


class Created(msgspec.Struct, frozen=True):
    accepted: Accepted
    claimed: DatabaseRecord | None
    """From the pool, as it is by now; None where it is to be made."""


async def create(box: SecretBox, principal: Principal, request: CreateDatabase) -> Created:
    """From the warm pool, or else one that is to be made. Raises `InvalidField`, `PlanLimitExceeded`,
    `DeletionsPending`, `TooManyUnderWay` or `CapacityExhausted`; nothing is made then."""
    planned = await _plan(principal, request)
    team = await team_for_create(principal, request)
    check_quotas(team.tier, request.plan, request.quotas)
    await check_held(team)
    if planned is not None:
        await check_bound(UNDER_WAY, team.id)
    started = perf_counter()
    claimed = await claim(wish_of(principal, request, team), DatabaseRecord)
    took = perf_counter() - started
    record = claimed or await _insert(box, principal, request, team)
    note_claim(record.engine, record.region, "hit" if claimed else "miss", took)
    accepted = await (_hand_over if claimed else _provision)(record, team)
    if planned is not None:
        accepted = await _add_application(box, principal, accepted, planned)
    return Created(accepted, claimed)


def wish_of(principal: Principal, request: CreateDatabase, team: Team) -> Wish:
    """What the pool is asked for."""
    return Wish(
        engine=request.db_type,
        region=None if request.region is UNSET else request.region,
        name=request.name,
        plan=request.plan,
        quotas=request.quotas,
        connections=limits_in_force(request.plan, request.quotas).connection_hard_limit,
        team_id=team.id,
        user_id=principal.user_id,
    )


async def _plan(principal: Principal, request: CreateDatabase) -> Plan | None:
    """What is to be applied when the database is there."""
    if request.blueprint_uuid is not UNSET:
        return await plan_at_creation(principal, request.blueprint_uuid, request.db_type, request.blueprint_variables)
    if request.blueprint_variables:
        raise InvalidField("blueprint_variables", "There is no blueprint_uuid that they could be for.")
    return None


async def _add_application(box: SecretBox, principal: Principal, accepted: Accepted, planned: Plan) -> Accepted:
    """It is begun by the step that makes the database active; here, where it is that already."""
    record = await records.find(UUID(accepted.subject))
    assert record is not None, "it was written a moment ago"
    await add(box, principal, record.id, planned, at_creation=True)
    # A request starts one workflow by itself.
    start = await start_next(record.id, relayed=accepted.start is not None)
    return msgspec.structs.replace(accepted, start=accepted.start or start, settled=False)


async def _hand_over(record: DatabaseRecord, team: Team) -> Accepted:
    """It is active already, so that is all there is to tell. Only other limits than it was made with are waited for."""
    await events.append(
        EventType.DATABASE_PROVISIONED, team_id=team.id, database_id=record.id, data=masked_view(record)
    )
    limited = record.limits_applied >= record.limits_revision
    start = None if limited else await request_limits(record, record.limits_revision)
    return Accepted(subject=str(record.uuid), start=start, settled=limited)


async def _provision(record: DatabaseRecord, team: Team) -> Accepted:
    """It is to be made."""
    await events.append(
        EventType.DATABASE_PROVISIONING_STARTED, team_id=team.id, database_id=record.id, data=masked_view(record)
    )
    await request_provisioning(
        ProvisionDatabaseInput(
            database=record.uuid,
            engine=record.engine,
            region=record.region,
            team_id=team.id,
            placement=record.placement,
        ),
        priority=INTERACTIVE,
    )
    return Accepted(subject=str(record.uuid))


async def _place(engine: Engine, region: str | None, connections: int) -> HostLoad:
    rows = await fetch(
        "SELECT region, bool_and(draining) AS closed FROM engine_hosts WHERE engine = $1"
        " AND sick_until IS DISTINCT FROM 'infinity' GROUP BY region ORDER BY region",
        engine,
    )
    regions = [row["region"] for row in rows]
    if region is not None and region not in regions:
        served = f"It is served in {', '.join(regions)}." if regions else "It is served nowhere."
        raise InvalidField("region", f"{engine.value} is not served in {region!r}. {served}")
    if not regions:
        raise InvalidField("db_type", f"No host serves {engine.value}.")
    host = await place_with_room_made(engine, region, connections)
    if host is None:
        where = region or "any region"
        if all(row["closed"] for row in rows if region in (None, row["region"])):
            raise CapacityExhausted(f"No {engine.value} host in {where} takes new databases.", field="region")
        raise CapacityExhausted(
            f"No {engine.value} host in {where} has room for a database with {connections} connections.",
            field="region" if region else "connection_hard_limit",
        )
    return host


async def _insert(box: SecretBox, principal: Principal, request: CreateDatabase, team: Team) -> DatabaseRecord:
    """A row for one that is to be made, on a host that has room for it."""
    connections = limits_in_force(request.plan, request.quotas).connection_hard_limit
    host = await _place(request.db_type, None if request.region is UNSET else request.region, connections)
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
    record = await records.find(uuid)
    assert record is not None, "it was written a moment ago"
    return record
