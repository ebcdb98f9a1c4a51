"""Partitions by time of our own tables: made before rows come, dropped by age, by this module alone.

The functions that do it belong to the role that migrates, and run with its rights: the service's own role may neither
make nor drop a table, and needs no more than EXECUTE on `ensure_partition` and `drop_oldest_partition`. A partition is
reached through its table only, so nobody but the owner has rights on it.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import asyncpg
import msgspec
import structlog

from app.store.engine import DB
from app.store.session import fetch_all, fetch_value

_MOST = 1000
"""Partitions that one call may ask for: more are a caller's mistake."""
log = structlog.get_logger(__name__)


class Span(StrEnum):
    """What one partition holds, in UTC."""

    DAY = "day"
    MONTH = "month"

    def begin(self, moment: datetime) -> datetime:
        """The beginning of the span that has this moment."""
        day = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return day if self is Span.DAY else day.replace(day=1)

    def after(self, begin: datetime) -> datetime:
        """The end of the span that begins there."""
        return self.begin(begin + timedelta(days=1 if self is Span.DAY else 31))


class PartitionedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table that a migration makes with `PARTITION BY RANGE` of a `timestamptz`."""

    tablename: str
    span: Span


class _Partition(msgspec.Struct, frozen=True):
    begin: datetime


_MISSING = """
SELECT b.begin FROM unnest($2::timestamptz[]) AS b (begin)
WHERE to_regclass('public.' || partition_name($1, b.begin)) IS NULL ORDER BY 1
"""


async def ensure(table: PartitionedTable, since: datetime, until: datetime) -> int:
    """Makes the partitions for rows from `since` on and before `until`, where they are missing; returns how many it
    made. Any number of processes may do so at once, and any number of times: it costs one look where all are there.
    Readers and writers of the table go on meanwhile, but where its default partition has rows for a new one: these are
    moved there, and all wait for that.

    Not within a transaction, which would keep the locks until its end. Raises `ValueError` for a range that is empty or
    takes more than a thousand partitions, `asyncpg.LockNotAvailableError` where somebody holds the table for seconds,
    and `asyncpg.CheckViolationError` where a row of a new one came to the default partition at that moment: the next
    call moves it."""
    assert DB.current_transaction.get() is None, "the locks would last as long as the transaction"
    begins = list(_begins(table.span, since, until))
    missing = await fetch_all(_Partition, _MISSING, table.tablename, begins)
    made = 0
    for one in missing:
        end = table.span.after(one.begin)
        made += await fetch_value(bool, "SELECT ensure_partition($1, $2, $3)", table.tablename, one.begin, end) or False
    return made


async def drop_before(table: PartitionedTable, moment: datetime) -> int:
    """Drops the partitions whose rows are all from before that moment, the oldest first, each in a transaction of its
    own; returns how many. None is dropped that ended less than a day ago. Readers wait for as long as that takes,
    a second at most: where somebody keeps the table busy for longer, the rest is left to the next call."""
    assert DB.current_transaction.get() is None, "the locks would last as long as the transaction"
    dropped = 0
    try:
        while await fetch_value(str, "SELECT drop_oldest_partition($1, $2)", table.tablename, moment) is not None:
            dropped += 1
    except asyncpg.LockNotAvailableError:
        log.info("partitions_kept", table=table.tablename, reason="the table is in use")
    return dropped


def _begins(span: Span, since: datetime, until: datetime) -> Iterator[datetime]:
    if since >= until:
        raise ValueError("the range is empty")
    begin = span.begin(since)
    for _ in range(_MOST):
        yield begin
        begin = span.after(begin)
        if begin >= until:
            return
    raise ValueError(f"more than {_MOST} partitions")
