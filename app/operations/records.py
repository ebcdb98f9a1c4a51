"""The rows of operations, as everything above the table reads and changes them."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from app.audit.drafts import found
from app.core.clock import Moment
from app.operations.kinds import ENDED, KINDS, OperationStatus, OperationType, StepStatus
from app.operations.reasons import Reason, ReasonCode, reason
from app.store.notify import CHANNEL
from app.store.session import execute, fetch_all, fetch_exists, fetch_one, fetch_values

_UNBEGUN = timedelta(seconds=15)
"""How long the next step may wait for a worker before that is reported."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A step of an operation, as clients see it."""

    name: str
    status: StepStatus = StepStatus.PENDING
    started_at: Moment | None = None
    finished_at: Moment | None = None
    attempts: int = 0
    detail: str | None = None


class OperationProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How much of an operation is done, in units of its kind."""

    done: int
    total: int
    unit: str


class OperationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `operations`, with its database's uuid and name. `read_at` is when it was read, by our own database's
    clock."""

    id: int
    uuid: UUID
    team_id: int
    database_id: int
    database: UUID
    database_name: str
    type: OperationType
    status: OperationStatus
    steps_json: str
    progress_json: str | None
    reason_json: str | None
    undo_json: str | None
    workflow_id: str | None
    revision: int
    user_id: int | None
    key_id: int | None
    request_id: str | None
    expected_seconds: float | None
    deadline_at: datetime | None
    overdue_at: datetime | None
    version: int
    created_at: datetime
    changed_at: datetime
    started_at: datetime | None
    cancel_requested_at: datetime | None
    finished_at: datetime | None
    read_at: datetime

    @property
    def steps(self) -> list[Step]:
        return msgspec.json.decode(self.steps_json, type=list[Step])

    @property
    def progress(self) -> OperationProgress | None:
        return None if self.progress_json is None else msgspec.json.decode(self.progress_json, type=OperationProgress)

    @property
    def stored_reason(self) -> Reason | None:
        return None if self.reason_json is None else msgspec.json.decode(self.reason_json, type=Reason)

    @property
    def reason(self) -> Reason | None:
        """Why it waits, or ended otherwise than it was asked for. An operation that nobody works on can't say so: its
        age does."""
        if self.reason_json is not None or self.ended:
            return self.stored_reason
        silent = self.read_at - self.changed_at
        return reason(ReasonCode.NO_WORKER, retryable=True) if silent > self._patience else None

    @property
    def _patience(self) -> timedelta:
        """The longest time that passes between two signs of life."""
        running = {step.name for step in self.steps if step.status is StepStatus.RUNNING}
        limits = [step.time_limit for step in KINDS[self.type].steps if step.name in running]
        return _UNBEGUN + max(limits, default=timedelta(0))

    @property
    def undo(self) -> dict[str, Any] | None:
        """What a cancellation puts back; None where nothing can."""
        return None if self.undo_json is None else msgspec.json.decode(self.undo_json, type=dict[str, Any])

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def cancellable(self) -> bool:
        """Whether clients can cancel it, as far as the row says. What no client asked for, only operators cancel: a
        pause by one of them, or for a limit, is not its tenant's to lift."""
        return self.user_id is not None and self.undoable

    @property
    def undoable(self) -> bool:
        """Whether operators can cancel it, as far as the row says."""
        return not self.ended and self.undo is not None and self.irrevocable_step is None

    @property
    def irrevocable_step(self) -> str | None:
        """The name of the step that has begun and can't be undone."""
        final = {step.name for step in KINDS[self.type].steps if step.irrevocable}
        return next(
            (
                one.name
                for one in self.steps
                if one.name in final and one.status not in (StepStatus.PENDING, StepStatus.SKIPPED)
            ),
            None,
        )


COLUMNS = """
o.id, o.uuid, o.team_id, o.database_id, d.uuid AS database, d.name AS database_name, o.type, o.status,
o.steps::text AS steps_json, o.progress::text AS progress_json, o.reason::text AS reason_json,
o.undo::text AS undo_json, o.workflow_id, o.revision,
o.user_id, o.key_id, o.request_id, o.expected_seconds, o.deadline_at, o.overdue_at, o.version, o.created_at,
o.changed_at, o.started_at, o.cancel_requested_at, o.finished_at, clock_timestamp() AS read_at
"""
_SELECT = f"SELECT {COLUMNS} FROM operations o JOIN databases d ON d.id = o.database_id"  # noqa: S608 - our own words
_LOCK = "FOR NO KEY UPDATE OF o"


async def find(operation: UUID, *, lock: bool = False) -> OperationRecord | None:
    """The operation, of any team. `lock` locks its row until the end of the transaction: lock the database first, if
    you lock both."""
    return await fetch_one(OperationRecord, f"{_SELECT} WHERE o.uuid = $1 {_LOCK if lock else ''}", operation)


async def find_owned(operation: UUID, team_ids: list[int]) -> OperationRecord | None:
    """The operation, if it is on a database of these teams, deleted or not."""
    sql = f"{_SELECT} WHERE o.uuid = $1 AND o.team_id = any($2::bigint[])"
    return found(await fetch_one(OperationRecord, sql, operation, team_ids))


async def find_latest(database: UUID, *types: OperationType) -> OperationRecord | None:
    """The newest operation of these types on the database."""
    return await fetch_one(
        OperationRecord,
        f"{_SELECT} WHERE d.uuid = $1 AND o.type = any($2::text[]) ORDER BY o.id DESC LIMIT 1",
        database,
        list(types),
    )


async def open_on(database_id: int, types: Collection[OperationType] = tuple(OperationType)) -> list[OperationRecord]:
    """The operations of these types on the database that have not ended, oldest first, locked until the end of the
    transaction."""
    return await fetch_all(
        OperationRecord,
        f"{_SELECT} WHERE o.database_id = $1 AND o.type = any($2::text[]) AND o.finished_at IS NULL"
        f" ORDER BY o.id {_LOCK}",
        database_id,
        list(types),
    )


async def open_of_workflow(workflow_id: str) -> OperationRecord | None:
    """The operation that the workflow works on, unless it has ended; locked until the end of the transaction."""
    return await fetch_one(
        OperationRecord, f"{_SELECT} WHERE o.workflow_id = $1 AND o.finished_at IS NULL {_LOCK}", workflow_id
    )


async def find_of_workflow(database: UUID, workflow_id: str) -> OperationRecord | None:
    """The newest operation on the database that the workflow works on, or has worked on, restarts of it included. No
    index names the workflows of operations that have ended."""
    return await fetch_one(
        OperationRecord,
        f"{_SELECT} WHERE o.database_id = (SELECT id FROM databases WHERE uuid = $1)"  # noqa: S608 - our own words
        " AND (o.workflow_id = $2 OR starts_with(o.workflow_id, $2 || '/')) ORDER BY o.id DESC LIMIT 1",
        database,
        workflow_id,
    )


async def find_unstarted(workflow_ids: Sequence[str]) -> list[OperationRecord]:
    """The operations that wait for one of these workflows to begin, locked until the end of the transaction; one that
    another transaction has locked is passed over."""
    return await fetch_all(
        OperationRecord,
        f"{_SELECT} WHERE o.workflow_id = any($1::text[]) AND o.finished_at IS NULL AND o.status = 'pending'"
        f" ORDER BY o.id {_LOCK} SKIP LOCKED",
        list(workflow_ids),
    )


async def write(
    record: OperationRecord,
    status: OperationStatus,
    steps: list[Step],
    *,
    reason: Reason | None,
    progress: OperationProgress | None = None,
) -> None:
    """Writes the changes of a row that is locked, and wakes the requests that wait for the operation or watch it."""
    await execute(
        """
        UPDATE operations SET status = $2, steps = $3::jsonb, reason = $4::jsonb, progress = $5::jsonb,
               version = version + 1, changed_at = clock_timestamp(),
               started_at = CASE WHEN $2 = 'pending' THEN started_at ELSE coalesce(started_at, clock_timestamp()) END,
               finished_at = CASE WHEN $6 THEN clock_timestamp() END
        WHERE id = $1 RETURNING pg_notify($7, $8)
        """,
        record.id,
        status.value,
        _json(steps),
        None if reason is None else _json(reason),
        record.progress_json if progress is None else _json(progress),
        status in ENDED,
        CHANNEL,
        str(record.database),
    )


async def note_cancellation(record: OperationRecord) -> None:
    """Records that somebody wants a locked operation to stop; its end is still to be found out."""
    await execute(
        "UPDATE operations SET cancel_requested_at = coalesce(cancel_requested_at, clock_timestamp()) WHERE id = $1",
        record.id,
    )
    await write(record, record.status, record.steps, reason=reason(ReasonCode.CANCELLING))


async def has_later(record: OperationRecord) -> bool:
    """Whether another operation of its type was accepted on its database since, and not cancelled."""
    return await fetch_exists(
        "SELECT 1 FROM operations WHERE database_id = $1 AND type = $2 AND id > $3 AND status <> 'cancelled'",
        record.database_id,
        record.type.value,
        record.id,
    )


async def move(database_id: int, types: Collection[OperationType], workflow_id: str) -> bool:
    """Has another workflow work on the open operations of these types from now on. Returns whether there are any."""
    moved = await fetch_values(
        int,
        "UPDATE operations SET workflow_id = $3, changed_at = clock_timestamp()"
        " WHERE database_id = $1 AND type = any($2::text[]) AND finished_at IS NULL RETURNING id",
        database_id,
        list(types),
        workflow_id,
    )
    return bool(moved)


async def rename_workflow(workflow_id: str, restarted: str) -> None:
    """Has a restarted workflow work on the open operation of the workflow with this id, or of an earlier restart of
    it."""
    await execute(
        "UPDATE operations SET workflow_id = $2, changed_at = clock_timestamp()"
        " WHERE (workflow_id = $1 OR starts_with(workflow_id, $1 || '/')) AND finished_at IS NULL",
        workflow_id,
        restarted,
    )


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
