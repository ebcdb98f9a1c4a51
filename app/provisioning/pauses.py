"""Pauses by a database's own team. What an operator or the plan paused, the team neither lifts nor takes over."""

from uuid import UUID

from app.auth.principal import Principal
from app.contracts.base import DatabaseStatus, PauseReason
from app.core.errors import PausedOtherwise
from app.databases import access, records
from app.databases.limits import check_pending
from app.databases.records import DatabaseRecord
from app.outbox.workflow_starts import Accepted
from app.quotas.plans import Plans


async def pause(plans: Plans, principal: Principal, database: UUID) -> Accepted:
    """Pauses a database until the team or an operator resumes it. Nothing happens to one that the team has paused.
    Raises `NotFound`, `PausedOtherwise`, `TooManyUnderWay`, or `DatabaseNotActive` for one that is being made."""
    record = await _owned(principal, database)
    if record.paused_reason is None:
        _check_pending(record)
    return Accepted(subject=str(database), start=await access.pause(plans, record, PauseReason.TEAM))


async def resume(principal: Principal, database: UUID) -> Accepted:
    """Ends the team's own pause. Nothing happens to one that is active. Raises as `pause` does."""
    record = await _owned(principal, database)
    if record.paused_reason is not None:
        _check_pending(record)
    return Accepted(subject=str(database), start=await access.resume(record))


async def _owned(principal: Principal, database: UUID) -> DatabaseRecord:
    record = await records.get_owned(database, principal.team_ids, lock=True)
    if record.status is DatabaseStatus.PAUSED and record.paused_reason not in (None, PauseReason.TEAM):
        assert record.paused_reason is not None
        raise PausedOtherwise(record.paused_reason.value)
    return record


def _check_pending(record: DatabaseRecord) -> None:
    check_pending("changes_of_access", record.access_revision, record.access_applied)
