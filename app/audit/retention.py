"""What the audit log keeps, and for how long."""

from datetime import datetime, timedelta

import msgspec

from app.audit.actions import Action
from app.audit.events import append
from app.core.clock import utc_now
from app.store.partitions import PartitionedTable, Span, drop_before, ensure
from app.store.session import fetch_all, transaction

EVENTS = PartitionedTable(tablename="audit_events", span=Span.MONTH)
LEAVES = PartitionedTable(tablename="audit_leaves", span=Span.MONTH)
_AHEAD = timedelta(days=100)
_BATCH = 500
_TAKE_COUNTS = """
DELETE FROM audit_refusals WHERE id IN (
    SELECT id FROM audit_refusals WHERE hour < date_trunc('hour', now()) ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
) RETURNING user_id, team_id, hour, refusals
"""


class _Counted(msgspec.Struct, frozen=True):
    user_id: int
    team_id: int | None
    hour: datetime
    refusals: int


def kept_since(days: int) -> datetime:
    """The beginning of the oldest month of which something is kept, if `days` is the longest time."""
    return Span.MONTH.begin(utc_now() - timedelta(days=days))


async def make_partitions() -> None:
    """Makes the partitions of the next months."""
    now = utc_now()
    for table in (EVENTS, LEAVES):
        await ensure(table, now, now + _AHEAD)


async def drop_old(days: int) -> int:
    """Drops the months of which nothing is kept any more, and leaves an event that says so. Returns how many."""
    before = kept_since(days)
    dropped = await drop_before(EVENTS, before)
    if dropped:
        changes = {"kept_since": (None, before.isoformat())}
        await append(Action.AUDIT_DROP, ("audit", "events"), changes=changes)
    await drop_before(LEAVES, before)
    return dropped


async def record_omitted(most: int) -> int:
    """Writes an event for each user and each hour that is over in which more refusals came than leave an event: it says
    how many they were. `most` is how many leave an event. Returns how many hours it recorded."""
    recorded = 0
    while True:
        async with transaction():
            counted = await fetch_all(_Counted, _TAKE_COUNTS, _BATCH)
            for one in counted:
                if one.refusals > most:
                    changes = {"hour": (None, one.hour.isoformat()), "refusals": (most, one.refusals)}
                    subject = ("user", one.user_id)
                    await append(Action.REFUSALS_OMIT, subject, team_id=one.team_id, changes=changes)
                    recorded += 1
        if len(counted) < _BATCH:
            return recorded
