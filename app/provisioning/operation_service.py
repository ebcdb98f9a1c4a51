"""What clients and operators do to operations. Every function belongs in the request's transaction."""

from collections.abc import Mapping
from uuid import UUID

import msgspec

from app.audit.drafts import note
from app.auth.principal import Principal
from app.auth.roles import Role
from app.auth.teams import get_team
from app.contracts.retries import RETRY_NOW
from app.core.errors import OperationEnded, OperationNotCancellable, require_found
from app.databases import records as databases
from app.databases.records import DatabaseRecord
from app.operations import records
from app.operations.kinds import KINDS, OperationStatus, OperationType
from app.operations.records import OperationRecord
from app.outbox.workflow_starts import Accepted, request_signal
from app.provisioning.cancelling import Cancel
from app.quotas.plans import Plans

Cancellations = Mapping[OperationType, Cancel]
_WHAT = "operation"
_DELETING = (Role.ADMIN, Role.OWNER)
"""The roles that delete databases."""


async def find_owned(principal: Principal, operation: UUID) -> OperationRecord:
    """An operation of one of the caller's teams, even if its database is deleted. Raises `NotFound`."""
    found = require_found(await records.find_owned(operation, principal.team_ids), _WHAT)
    principal.check_reach(found.database, _WHAT)
    return found


async def cancel(plans: Plans, cancellations: Cancellations, principal: Principal, operation: UUID) -> Accepted:
    """Undoes an operation that has not ended. Raises `NotFound`, `OperationNotCancellable`, or what undoing it raises,
    as a deletion and an undeletion do; and `InsufficientRole` where that deletes what holds data."""
    found = await find_owned(principal, operation)
    if found.type is OperationType.UNDELETE:
        principal.check_role(found.team_id, _DELETING)
    return await _cancel(plans, cancellations, found, by_operator=False)


async def cancel_any(plans: Plans, cancellations: Cancellations, operation: UUID) -> Accepted:
    """The same for an operator, on any team's operation; also on one that no client asked for."""
    found = require_found(await records.find(operation), _WHAT)
    note(team_id=found.team_id)
    return await _cancel(plans, cancellations, found, by_operator=True)


async def retry(principal: Principal, operation: UUID) -> Accepted:
    """Has an operation that waits make its next attempt now. Raises `NotFound` or `OperationEnded`."""
    await find_owned(principal, operation)
    return await retry_any(operation)


async def retry_any(operation: UUID) -> Accepted:
    """The same for an operator, on any team's operation. Nothing happens to one whose next attempt is under way or
    about to be: each signal is kept in the workflow's history, whose length is bounded, so there is one for each pause
    at most."""
    record = require_found(await records.find(operation, lock=True), _WHAT)
    note(team_id=record.team_id)
    if record.ended:
        raise OperationEnded(record.status.value)
    pause = record.stored_reason
    if record.status is OperationStatus.WAITING and pause is not None and pause.is_after(record.read_at):
        assert record.workflow_id is not None, "what waits has a workflow"
        await request_signal(KINDS[record.type].workflow, record.workflow_id, RETRY_NOW)
        now = msgspec.structs.replace(pause, next_attempt_at=record.read_at)
        await records.write(record, record.status, record.steps, reason=now)
    return Accepted(subject=str(record.uuid))


async def _cancel(plans: Plans, cancellations: Cancellations, found: OperationRecord, *, by_operator: bool) -> Accepted:
    database, operation = await _locked(found)
    status = operation.status.value
    if operation.ended:
        raise OperationNotCancellable(f"The operation has ended: it is {status}.", status=status)
    if operation.irrevocable_step is not None:
        raise OperationNotCancellable(
            f"The step {operation.irrevocable_step} has begun, and can't be undone.",
            status=status,
            step=operation.irrevocable_step,
        )
    if not (operation.undoable if by_operator else operation.cancellable):
        raise OperationNotCancellable(
            "It can't be cancelled." if by_operator else "It was not asked for by a client; operators cancel it.",
            status=status,
        )
    start = await cancellations[operation.type](plans, operation, database)
    return Accepted(subject=str(operation.uuid), start=start)


async def _locked(found: OperationRecord) -> tuple[DatabaseRecord, OperationRecord]:
    """Locks the team first, then its database, then the operation, as everything does that locks several of them."""
    await get_team(found.team_id, lock=True)
    database = await databases.find_for_update(found.database)
    operation = await records.find(found.uuid, lock=True)
    assert database is not None, "rows of databases with a team are kept"
    assert operation is not None, "an operation that has not ended is kept"
    return database, operation
