"""How far an operation has come, written by those who take its steps, and why it waits.

It is written when something changes, not at each look: of a step that ends within a moment, only the end is written.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from app.contracts.retries import pause_after
from app.operations.attempt import Attempt, current
from app.operations.kinds import KINDS, OperationStatus, OperationType, StepStatus
from app.operations.reasons import Reason, ReasonCode, reason
from app.operations.records import (
    OperationProgress,
    OperationRecord,
    Step,
    find_unstarted,
    open_of_workflow,
    open_on,
    write,
)
from app.store.session import transaction


async def begin_step(database_id: int, type: OperationType, step: str) -> None:
    """Records that the step begins, in the transaction that makes it begin; the steps before it are done."""
    for record in await open_on(database_id, (type,)):
        await write(record, OperationStatus.RUNNING, _begun(record, step), reason=None)


async def wait_out(
    database_id: int, type: OperationType, step: str, code: ReasonCode, *, until: datetime | None
) -> None:
    """Records that the step is to wait until `until`, in the transaction that knows of it; the steps before it are
    done."""
    for record in await open_on(database_id, (type,)):
        over = until is None or until <= record.read_at
        status = OperationStatus.RUNNING if over else OperationStatus.WAITING
        why = None if over else reason(code, next_attempt_at=until)
        await write(record, status, _begun(record, step), reason=why)


async def end_step(record: OperationRecord, step: str) -> None:
    """Records that the step of a locked operation is done, and nobody has taken the next one yet."""
    steps = [_succeeded(one, record.read_at) if one.name == step else one for one in record.steps]
    await write(record, OperationStatus.PENDING, steps, reason=None)


async def begin(record: OperationRecord, step: str, progress: OperationProgress | None = None) -> None:
    """The same as `begin_step`, for an operation that is locked."""
    await write(record, OperationStatus.RUNNING, _begun(record, step), reason=_cancelling(record), progress=progress)


async def advance(record: OperationRecord, progress: OperationProgress) -> None:
    """Records that more of a locked operation is done."""
    if record.progress != progress:
        await write(record, record.status, record.steps, reason=record.stored_reason, progress=progress)


async def note_attempt(attempt: Attempt) -> None:
    """Records that the attempt is under way, and takes a while."""
    async with transaction():
        record = await open_of_workflow(attempt.workflow_id)
        step = _open_step(record, attempt)
        if record is None or step is None:
            return
        steps = _begun(record, step, attempt)
        await write(record, OperationStatus.RUNNING, steps, reason=_cancelling(record))
    # One that doesn't count may count yet, by its failure.
    attempt.counted = attempt.counted or _counts(record, attempt)


async def note_failure(attempt: Attempt, code: ReasonCode) -> None:
    """Records that the attempt failed, and the next one comes after a pause."""
    async with transaction():
        record = await open_of_workflow(attempt.workflow_id)
        step = _open_step(record, attempt)
        if record is None or step is None:
            return
        steps = _begun(record, step, attempt, failed=True)
        pause = pause_after(next(one.attempts for one in steps if one.name == step))
        why = reason(code, retryable=True, next_attempt_at=record.read_at + pause)
        await write(record, OperationStatus.WAITING, steps, reason=why)
    attempt.counted = True


async def note_unstarted(workflow_ids: Sequence[str]) -> None:
    """Records that these workflows are still to be started: what runs them can't be reached."""
    if not workflow_ids:
        return
    async with transaction():
        for record in await find_unstarted(workflow_ids):
            if record.stored_reason is None or record.stored_reason.code is not ReasonCode.WORKFLOWS_UNAVAILABLE:
                why = reason(ReasonCode.WORKFLOWS_UNAVAILABLE, retryable=True)
                await write(record, OperationStatus.PENDING, record.steps, reason=why)


async def note_started(workflow_ids: Sequence[str]) -> None:
    """Takes back what `note_unstarted` recorded of these workflows, if it recorded anything."""
    if not workflow_ids:
        return
    async with transaction():
        for record in await find_unstarted(workflow_ids):
            if record.stored_reason is not None and record.stored_reason.code is ReasonCode.WORKFLOWS_UNAVAILABLE:
                await write(record, OperationStatus.PENDING, record.steps, reason=None)


def _open_step(record: OperationRecord | None, attempt: Attempt) -> str | None:
    """The step that the attempt is at. None where it is done already: what its activity does after that is no step, and
    nor is a repetition whose first answer was lost."""
    step = None if record is None else KINDS[record.type].step_of(attempt.activity)
    if record is None or step is None:
        return None
    done = any(
        one.name == step.name and one.status not in (StepStatus.PENDING, StepStatus.RUNNING) for one in record.steps
    )
    return None if done else step.name


def _begun(record: OperationRecord, name: str, attempt: Attempt | None = None, *, failed: bool = False) -> list[Step]:
    """The steps of the operation once this one runs, or `attempt` at it has failed."""
    names = [step.name for step in record.steps]
    before = set(names[: names.index(name)])
    counts = attempt is not None and _counts(record, attempt, failed=failed)
    least = 1 if attempt is None else 0
    steps = []
    for step in record.steps:
        if step.name in before:
            step = _succeeded(_since(record, step), record.read_at)
        elif step.name == name:
            began = record.read_at if attempt is None else attempt.began
            step = msgspec.structs.replace(
                step,
                status=StepStatus.RUNNING,
                started_at=step.started_at or began,
                attempts=max(least, step.attempts + counts),
            )
        steps.append(step)
    return steps


def _since(record: OperationRecord, step: Step) -> Step:
    """The step with its begin, where the attempt that this task makes is its first, and nobody has reported it yet."""
    now = current.get()
    if now is None or now.workflow_id != record.workflow_id or step.started_at is not None:
        return step
    taken = KINDS[record.type].step_of(now.activity)
    return msgspec.structs.replace(step, started_at=now.began) if taken and taken.name == step.name else step


def _counts(record: OperationRecord, attempt: Attempt, *, failed: bool = False) -> bool:
    """Whether it is one more attempt: each call of a step's first activity is, once, and each other one that fails."""
    step = KINDS[record.type].step_of(attempt.activity)
    return step is not None and (failed or attempt.activity == step.activities[0]) and not attempt.counted


def _succeeded(step: Step, at: datetime) -> Step:
    if step.status not in (StepStatus.PENDING, StepStatus.RUNNING):
        return step
    return msgspec.structs.replace(
        step,
        status=StepStatus.SUCCEEDED,
        started_at=step.started_at or at,
        finished_at=at,
        attempts=max(1, step.attempts),
    )


def _cancelling(record: OperationRecord) -> Reason | None:
    return None if record.cancel_requested_at is None else reason(ReasonCode.CANCELLING)
