"""A database becomes active, or is deleted: its row, its event and the applications that wait for it, in one
transaction."""

from datetime import datetime, timedelta
from uuid import UUID

from app.audit.actions import Action
from app.audit.events import OPERATOR, append
from app.backups.restores import in_place
from app.backups.restores import records as restorations
from app.blueprints.applications.queue import end_waiting, start_next
from app.contracts.base import DatabaseStatus
from app.contracts.databases import ProvisionDatabase
from app.contracts.restores import (
    BACKUP_DAMAGED,
    BACKUP_MISSING,
    BACKUP_UNMADE,
    LOAD_REFUSED,
    SOURCE_GONE,
    RestorationOutcome,
)
from app.core.clock import utc_now
from app.core.metrics.counters import PROVISIONING_SECONDS
from app.databases import records, states
from app.databases.records import DatabaseRecord
from app.databases.views import append_event, append_event_for
from app.hosts.loads import mark_well
from app.operations.ends import finish
from app.operations.kinds import OperationStatus, OperationType
from app.operations.reasons import ReasonCode
from app.outbox.event_types import EventType
from app.quotas import holds
from app.quotas.plans import Plans
from app.store.notify import announce
from app.store.session import transaction

NO_GRACE = timedelta(0)
"""The grace of a database that never became active: it holds nothing worth keeping."""
_REASONS = {
    BACKUP_DAMAGED: ReasonCode.BACKUP_DAMAGED,
    BACKUP_MISSING: ReasonCode.BACKUP_MISSING,
    BACKUP_UNMADE: ReasonCode.BACKUP_UNMADE,
    LOAD_REFUSED: ReasonCode.LOAD_REFUSED,
    SOURCE_GONE: ReasonCode.SOURCE_GONE,
}
"""The reasons by the type of the failure."""
_CREATES = (OperationType.CREATE, OperationType.CLONE, OperationType.RESTORE)
_ENDED_BY_DELETION = (
    *_CREATES,
    OperationType.UNDELETE,
    OperationType.LIMITS,
    OperationType.PAUSE,
    OperationType.RESUME,
)
"""The operations that a deletion ends. Blueprints' applications end by themselves: `app.blueprints.applications`."""


async def activate(plans: Plans, made: DatabaseRecord, *, restoration: UUID | None = None) -> None:
    """Changes `provisioning` to `active`, once, for a database that was made where `made` places it; `restoration` has
    filled it. Raises `NotWanted` for a deleted database, `MadeElsewhere` for one that was moved meanwhile."""
    async with transaction():
        record = await states.mark_active(made.uuid, made.placement)
        if record is None:
            return
        await mark_well(record.host_id)
        await append_event_for(plans, EventType.DATABASE_PROVISIONED, record)
        await start_next(record.id, relayed=True)
        if restoration is not None:
            await restorations.end(restoration, RestorationOutcome.COMPLETED)
        await finish(record.id, _CREATES)
        await announce(record.uuid)
    _observe(record, "active")


async def note_deleted(plans: Plans, record: DatabaseRecord, *, grace: timedelta, cancelled_jobs: int = 0) -> datetime:
    """Changes any status to `deleted`, in the caller's transaction, with the row locked. Returns when its data is
    destroyed."""
    destroy_at = await states.mark_deleted(record.id, grace=grace, cancelled_jobs=cancelled_jobs)
    await end_waiting(record.uuid, "The database was deleted before its turn came. Nothing was changed.")
    await in_place.end_unfinished(record)
    await finish(record.id, _ENDED_BY_DELETION, OperationStatus.CANCELLED, because=ReasonCode.DATABASE_DELETED)
    await append_event(plans, EventType.DATABASE_DELETED, record.uuid)
    await announce(record.uuid)
    if record.status is DatabaseStatus.PROVISIONING:
        _observe(record, "cancelled")
    return destroy_at


async def note_destroyed(plans: Plans, database: UUID) -> None:
    """Records that the data of a deleted database is gone, and notifies its team: once, and not of a create that never
    became active, nor of a member of the pool."""
    async with transaction():
        if await states.record_destroyed(database):
            record = await records.find(database)
            assert record is not None, "it was changed a moment ago"
            await holds.delete(record.id)
            if record.team_id is not None:
                await append(Action.DATABASE_DESTROY, ("database", database), team_id=record.team_id)
            if record.provisioned_at is not None:
                await append_event_for(plans, EventType.DATABASE_DESTROYED, record)


async def abandon_provisioning(plans: Plans, database: UUID) -> None:
    """Ends a provisioning that was cancelled from outside, as a deletion would end it."""
    async with transaction():
        record = await records.find_for_update(database)
        if record is not None and record.status is DatabaseStatus.PROVISIONING:
            await note_deleted(plans, record, grace=NO_GRACE, cancelled_jobs=1)
            # By hand, in Temporal: what a client or the command cancels is deleted before its workflow learns of it.
            stopped = {"workflow": (ProvisionDatabase.__name__, "cancelled")}
            subject = ("database", database)
            await append(Action.WORKFLOW_STOP, subject, team_id=record.team_id, changes=stopped, actor=OPERATOR)


async def fail_restoration(plans: Plans, restoration: UUID, kind: str) -> None:
    """Ends a restoration that can't succeed, and its operation. A database that it was to fill is deleted with it: it
    was never active, and never will be."""
    async with transaction():
        found = await restorations.find(restoration)
        record = None if found is None else await records.find_for_update(found.database)
        if found is None or record is None or not await restorations.end(restoration, RestorationOutcome.FAILED):
            return
        await finish(
            record.id,
            (OperationType.CLONE, OperationType.RESTORE),
            OperationStatus.FAILED,
            because=_REASONS.get(kind, ReasonCode.STEP_FAILED),
        )
        if record.status is DatabaseStatus.PROVISIONING:
            await note_deleted(plans, record, grace=NO_GRACE, cancelled_jobs=1)
        else:
            await in_place.reopen(record)


def _observe(record: DatabaseRecord, outcome: str) -> None:
    if record.team_id is None:
        return  # it was made while nobody waited, behind all others
    took = utc_now() - record.created_at
    PROVISIONING_SECONDS.labels(record.engine.value, record.region, outcome).observe(max(0, took.total_seconds()))
