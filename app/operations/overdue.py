"""Operations that are still open after their deadline: reported once, to their team."""

from app.operations.records import COLUMNS, OperationRecord
from app.operations.views import view
from app.outbox import events
from app.outbox.event_types import EventType
from app.store.session import execute, fetch_all, transaction

_MOST = 100
"""The most operations that are reported in one transaction."""

_OVERDUE = f"""
SELECT {COLUMNS} FROM operations o JOIN databases d ON d.id = o.database_id
WHERE o.finished_at IS NULL AND o.deadline_at < now() AND o.overdue_at IS NULL
ORDER BY o.deadline_at LIMIT $1 FOR NO KEY UPDATE OF o SKIP LOCKED
"""  # noqa: S608 - our own words


async def report_overdue() -> int:
    """Sends `operation.overdue` for each that is overdue and that was not reported yet; returns how many there were.
    The event and the mark are one transaction: a process that dies in between sends nothing, and the next run does."""
    total = 0
    while reported := await _report(_MOST):
        total += reported
    return total


async def _report(most: int) -> int:
    async with transaction():
        overdue = await fetch_all(OperationRecord, _OVERDUE, most)
        for record in overdue:
            await events.append(
                EventType.OPERATION_OVERDUE,
                team_id=record.team_id,
                database_id=record.database_id,
                data=view(record),
            )
        await execute(
            "UPDATE operations SET overdue_at = now() WHERE id = any($1::bigint[])", [record.id for record in overdue]
        )
    return len(overdue)
