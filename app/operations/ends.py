"""An operation ends, in the transaction that ends the change, so that the two never disagree."""

from collections.abc import Collection
from datetime import datetime, timedelta

import msgspec

from app.operations import attempt
from app.operations.attempt import Attempt
from app.operations.kinds import KINDS, OperationStatus, OperationType, StepStatus
from app.operations.reasons import Reason, ReasonCode, reason
from app.operations.records import OperationRecord, Step, open_on, write
from app.store.session import execute


async def finish(
    database_id: int,
    types: Collection[OperationType],
    status: OperationStatus = OperationStatus.SUCCEEDED,
    *,
    because: ReasonCode | None = None,
    revision: int | None = None,
    workflow_id: str | None = None,
) -> int:
    """Ends the open operations of these types on the database, in a transaction that has its row locked; returns how
    many there were. `revision` leaves alone operations that are to reach a later one; `workflow_id` selects the
    operation of that workflow alone."""
    ended = 0
    for record in await open_on(database_id, types):
        later = revision is not None and record.revision > revision
        if not later and workflow_id in (None, record.workflow_id):
            await end(record, status, because=because)
            ended += 1
    return ended


async def end(record: OperationRecord, status: OperationStatus, *, because: ReasonCode | None = None) -> None:
    """Ends one operation, whose row is locked."""
    now = attempt.current.get()
    mine = now if now is not None and now.workflow_id == record.workflow_id else None
    why: Reason | None = None if because is None else reason(because)
    await write(record, status, ended_steps(record, status, record.read_at, mine), reason=why)


def ended_steps(
    record: OperationRecord, status: OperationStatus, at: datetime, mine: Attempt | None = None
) -> list[Step]:
    """The steps of an operation that ends with this status; `mine` is the attempt that ends it."""
    kind = KINDS[record.type]
    taken = kind.step_of(mine.activity) if mine is not None else None
    steps = []
    for step in record.steps:
        if mine is not None and taken is not None and step.name == taken.name:
            counts = not mine.counted and mine.activity == taken.activities[0]
            step = msgspec.structs.replace(
                step, started_at=step.started_at or mine.began, attempts=step.attempts + counts
            )
        steps.append(_ended(step, status, at))
    return steps


def _ended(step: Step, status: OperationStatus, at: datetime) -> Step:
    if step.status not in (StepStatus.PENDING, StepStatus.RUNNING):
        return step
    if status is OperationStatus.SUCCEEDED:
        return msgspec.structs.replace(
            step,
            status=StepStatus.SUCCEEDED,
            started_at=step.started_at or at,
            finished_at=at,
            attempts=max(step.attempts, 1),
        )
    if step.started_at is None:
        return msgspec.structs.replace(step, status=StepStatus.SKIPPED)
    failed = status is OperationStatus.FAILED
    return msgspec.structs.replace(step, status=StepStatus.FAILED if failed else StepStatus.SKIPPED, finished_at=at)


async def delete_old_operations(most: int, age: timedelta) -> int:
    """Deletes at most `most` operations that ended longer ago than `age`; returns how many. See `app.upkeep.sweep`."""
    return await execute(
        """
        DELETE FROM operations WHERE id IN (
            SELECT id FROM operations WHERE finished_at < now() - $2::interval
            ORDER BY finished_at LIMIT $1 FOR UPDATE SKIP LOCKED
        )
        """,
        most,
        age,
    )
