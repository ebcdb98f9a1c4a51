"""The applications to one database, one after the other.

Only the first application that has not ended has its workflow started; the transaction that ends one starts the next.
Every transaction that adds to the queue or takes from it locks the database's row.
"""

from uuid import UUID

import msgspec

from app.blueprints.applications import records
from app.blueprints.applications.operation import note_cancelled, note_turn
from app.contracts.applications import ApplicationStatus, ApplyBlueprint, ApplyBlueprintInput
from app.contracts.base import DatabaseStatus
from app.contracts.queues import apply_workflow_id
from app.contracts.retries import CANCEL, RETRY_NOW
from app.operations.kinds import KINDS
from app.operations.reasons import ReasonCode
from app.operations.records import OperationRecord, note_cancellation
from app.outbox.workflow_starts import INTERACTIVE, PendingStart, request_signal, request_start
from app.store.session import execute, fetch_all

_WAITING = (DatabaseStatus.ACTIVE, DatabaseStatus.PAUSED, DatabaseStatus.DELETED)
"""The statuses in which the next application has its turn, be it to fail; before them the database is still being
made."""


async def start_next(database_id: int, *, relayed: bool = False) -> PendingStart | None:
    """Requests the workflow of the application whose turn it is, if one waits. Call it in the transaction that locked
    the database's row; `relayed` where nobody starts the workflow after the commit."""
    record = await records.find_next(database_id)
    if record is None or record.status is not ApplicationStatus.PENDING or record.database_status not in _WAITING:
        return None
    assert record.team_id is not None, "nothing is applied to a database that is nobody's"
    await note_turn(database_id, record.id)
    return await request_start(
        ApplyBlueprint,
        apply_workflow_id(record.id, dry_run=record.is_dry_run),
        ApplyBlueprintInput(
            database=record.database,
            engine=record.engine,
            region=record.region,
            team_id=record.team_id,
            application=record.id,
        ),
        priority=INTERACTIVE,
        purpose=f"{'Dry run' if record.is_dry_run else 'Application'} {record.id} of a blueprint: ",
        relayed=relayed,
    )


async def end_waiting(database: UUID, reason: str) -> None:
    """Ends all applications that have not started, in the transaction that makes them pointless."""
    ended = await fetch_all(
        _Ended,
        """
        UPDATE blueprint_applications a SET status = 'failed', error_message = $2, completed_at = now(),
               values_sealed = NULL
        FROM databases d WHERE d.id = a.database_id AND d.uuid = $1 AND a.status = 'pending'
        RETURNING a.id, a.database_id
        """,
        database,
        reason,
    )
    if ended:
        await note_cancelled(ended[0].database_id, [one.id for one in ended], ReasonCode.DATABASE_DELETED)


async def cancel(operation: OperationRecord) -> None:
    """Ends an application that has not begun, or makes one that has begun stop as soon as it can, in a transaction that
    has locked the rows of the database and of the operation."""
    assert operation.undo is not None, "an application can be cancelled"
    assert operation.workflow_id is not None, "it has a workflow"
    application: int = operation.undo["application"]
    ended = await execute(
        """
        UPDATE blueprint_applications SET status = 'failed', completed_at = now(), values_sealed = NULL,
               error_message = 'It was cancelled before it had changed anything.'
        WHERE id = $1 AND status = 'pending' AND completed_at IS NULL
        """,
        application,
    )
    if ended:
        await note_cancelled(operation.database_id, [application], ReasonCode.CANCELLED)
        await start_next(operation.database_id, relayed=True)
    else:
        await note_cancellation(operation)
    # The workflow of one that has just ended wakes up to see that.
    workflow = KINDS[operation.type].workflow
    await request_signal(workflow, operation.workflow_id, RETRY_NOW if ended else CANCEL)


class _Ended(msgspec.Struct, frozen=True):
    id: int
    database_id: int
