"""Restoring access to a deleted database, as long as its data is retained."""

from uuid import UUID

from app.audit.drafts import note
from app.auth.principal import Principal
from app.auth.teams import get_team
from app.backups.ends import end_of_undeleted
from app.contracts.base import DatabaseStatus
from app.core.errors import CapacityExhausted, DatabaseDestroyed, DatabaseNotDeleted, NotFound
from app.databases import access, records
from app.databases.deletion import is_due, wake_deletion
from app.databases.pool.eviction import room_on_host
from app.databases.records import DatabaseRecord, count_owned
from app.databases.views import append_event
from app.outbox.event_types import EventType
from app.outbox.workflow_starts import Accepted, PendingStart
from app.quotas.plans import Plans, check_plan
from app.store.session import transaction


async def undelete(plans: Plans, database: UUID) -> DatabaseRecord:
    """Brings the database back as it was: uuid, name, credentials, limits, data; paused if it was paused, frozen if it
    was frozen. Its tenant gets in again when the workflow `ApplyAccess` has ended, which brings `database.resumed` to
    one that was not paused. Returns the row as it is to become.

    Raises `NotFound`, `DatabaseNotDeleted`, `DatabaseDestroyed` when its grace period is over, `PlanLimitExceeded` when
    its team may not have one more database of its plan, or `CapacityExhausted` when the connections that it gave up are
    allocated to others by now.
    """
    async with transaction():
        await _undelete(plans, database, relayed=True)
        changed = await records.find(database)
        assert changed is not None, "it was changed a moment ago"
        return changed


async def undelete_owned(plans: Plans, principal: Principal, database: UUID) -> Accepted:
    """The same for a client. Raises `NotFound` for a database that is another's, never became active, or is past its
    grace period."""
    if await records.team_of(database, principal.team_ids) is None:
        raise NotFound("database")
    try:
        start = await _undelete(plans, database, relayed=False)
    except DatabaseDestroyed:
        raise NotFound("database") from None
    return Accepted(subject=str(database), start=start)


async def _undelete(plans: Plans, database: UUID, *, relayed: bool) -> PendingStart:
    """Undeletes a database, in a transaction. Returns the workflow that lets the tenant in."""
    found = await records.find(database)
    if found is None or found.team_id is None:
        raise NotFound("database")
    note(team_id=found.team_id)
    # The team first, as everything does that counts what it has.
    team = await get_team(found.team_id, lock=True, live=True)
    record = await records.find_for_update(database)
    assert record is not None, "rows of databases with a team are kept"
    if record.status is not DatabaseStatus.DELETED:
        raise DatabaseNotDeleted(record.status.value)
    if await is_due(record):
        raise DatabaseDestroyed()
    check_plan(team.tier, record.plan, await count_owned(team.id))
    if await room_on_host(record.host_id, record.connections, allocated=0) < record.connections:
        raise CapacityExhausted(
            f"The database's host has no room for its {record.connections} connections.",
            field="connection_hard_limit",
        )
    start = await access.bring_back(record, relayed=relayed)
    if start is None:
        raise DatabaseDestroyed()
    await end_of_undeleted(record.id)
    await wake_deletion(record)
    await append_event(plans, EventType.DATABASE_UNDELETED, database)
    return start
