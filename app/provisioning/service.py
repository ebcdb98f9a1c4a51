"""What clients do to databases. Every function that changes something belongs in the request's transaction, and
returns the workflow that the change asks for, to be started after the commit."""

from datetime import timedelta
from uuid import UUID

from app.auth.principal import Principal
from app.auth.teams import get_team
from app.contracts.base import DatabaseStatus
from app.core.errors import InvalidField, NotFound, require_found
from app.databases import records, states
from app.databases.deletion import request_deletion
from app.databases.limits import change_limits
from app.databases.records import DatabaseRecord
from app.databases.retention import end_oldest
from app.databases.schemas import ChangeQuotas
from app.outbox.workflow_starts import Accepted
from app.pool.eviction import room_on_host
from app.provisioning.lifecycle import NO_GRACE, note_deleted
from app.quotas.plans import Plans, Quotas, check_quotas, limits_in_force


async def get(principal: Principal, database: UUID) -> DatabaseRecord:
    """Raises `NotFound`."""
    return require_found(await records.find_owned(database, principal.team_ids), "database")


async def get_any(database: UUID) -> DatabaseRecord:
    """The row in whatever state. Raises `NotFound` when there never was one."""
    return require_found(await records.find(database), "database")


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
    await states.rename(record.id, name)
    return Accepted(subject=str(database), settled=True)


async def rename_any(database: UUID, name: str) -> None:
    """The same for an operator, whosever it is. Raises `NotFound`."""
    record = await _get_live(database, lock=True)
    await states.rename(record.id, name)


async def change_quotas(plans: Plans, principal: Principal, database: UUID, change: ChangeQuotas) -> Accepted:
    """Raises `NotFound`, `PlanLimitExceeded`, or `InvalidField` when the host has no room for more connections."""
    record = await _owned_for_update(principal, database)
    assert record.team_id is not None, "it is one of the caller's teams'"
    team = await get_team(record.team_id)
    quotas = change.over(record.quotas)
    # What it doesn't speak of stays, be it above what the team's tier could ask for nowadays.
    check_quotas(plans, team.tier, record.plan, change.over(Quotas()))
    connections = limits_in_force(plans, record.plan, quotas).connection_hard_limit
    if connections > record.connections:
        await _check_room(record, connections)
    return Accepted(subject=str(database), start=await change_limits(record, quotas, connections))


async def delete(plans: Plans, principal: Principal, database: UUID, grace: timedelta) -> Accepted:
    """Marks it deleted, and ends the grace of the team's oldest ones beyond what its tier has it keep. Access ends
    when the workflow has revoked it, which the caller waits for. Raises `NotFound`."""
    return await _delete(plans, await get(principal, database), grace)


async def delete_any(plans: Plans, database: UUID, grace: timedelta) -> Accepted:
    """The same for an operator, whosever it is. Raises `NotFound`."""
    return await _delete(plans, await _get_live(database), grace)


async def _delete(plans: Plans, found: DatabaseRecord, grace: timedelta) -> Accepted:
    assert found.team_id is not None, "it is one of a team's"
    # Before the database, as everything does that counts what a team has.
    await get_team(found.team_id, lock=True)
    record = await _get_live(found.uuid, lock=True)
    provisioning = record.status is DatabaseStatus.PROVISIONING
    destroy_at = await note_deleted(
        plans, record, grace=NO_GRACE if provisioning else grace, cancelled_jobs=int(provisioning)
    )
    start = await request_deletion(record, destroy_at=destroy_at, cancel_provisioning=provisioning)
    await end_oldest(plans, found.team_id)
    return Accepted(subject=str(record.uuid), start=start)


async def _get_live(database: UUID, *, lock: bool = False) -> DatabaseRecord:
    """Any team's, unless it is deleted. Raises `NotFound`."""
    record = await (records.find_for_update(database) if lock else records.find(database))
    if record is None or record.team_id is None or record.status is DatabaseStatus.DELETED:
        raise NotFound("database")
    return record


async def _owned_for_update(principal: Principal, database: UUID) -> DatabaseRecord:
    return require_found(await records.find_owned(database, principal.team_ids, lock=True), "database")


async def _check_room(record: DatabaseRecord, connections: int) -> None:
    room = await room_on_host(record.host_id, connections, promised=record.connections)
    if connections > room:
        raise InvalidField("connection_hard_limit", f"The database's host has room for {room} connections.")
