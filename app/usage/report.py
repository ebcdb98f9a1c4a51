"""What the ledger says, with the periods that are not closed yet: by databases, teams, plans or regions."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import assert_never
from uuid import UUID

import msgspec

from app.store.session import fetch_all, fetch_one


class GroupBy(StrEnum):
    DATABASE = "database"
    TEAM = "team"
    PLAN = "plan"
    REGION = "region"


class Granularity(StrEnum):
    """Into which spans of time a report is divided, in UTC."""

    PERIOD = "period"
    """The ledger's own periods."""
    DAY = "day"
    MONTH = "month"
    TOTAL = "total"
    """Not divided at all."""


class UsageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The periods that begin from `since` on and before `until`."""

    since: datetime
    until: datetime
    group_by: GroupBy = GroupBy.DATABASE
    granularity: Granularity = Granularity.PERIOD
    team_ids: list[int] | None = None
    """Only these teams' usage; None for all."""
    databases: list[UUID] | None = None
    """Only these databases' usage; None for all."""


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """The clock of the meters."""

    now: datetime
    """Everything before this moment is counted."""
    closed_through: datetime
    period_seconds: int


class UsageCursor(msgspec.Struct, frozen=True):
    """A line of a report."""

    starts_at: datetime
    key: str


class UsageLine(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of one group in one span of time. Byte-seconds may have more than 64 bits."""

    starts_at: datetime
    ends_at: datetime
    key: str
    """The group: a uuid, a team's id, a plan or a region."""
    team_id: int
    """The database's team, or the team itself; of any other group, any of its teams."""
    open: bool
    """Some of it is not closed yet."""
    runtime_seconds: int
    storage_byte_seconds: Decimal
    backup_byte_seconds: Decimal


_WINDOW_GROWTH = 4
_WHOSE = "($3::bigint[] IS NULL OR team_id = any($3)) AND ($4::uuid[] IS NULL OR database_uuid = any($4))"
_WHERE = f"starts_at >= $1 AND starts_at < $2 AND {_WHOSE}"
_COLUMNS = (
    "database_uuid, team_id, plan, region, starts_at, ends_at, runtime_seconds, storage_byte_seconds,"
    " backup_byte_seconds"
)
# One statement, so that no period is seen on its way into the ledger, twice or not at all. Of whole days, from $11 on
# and before $12, the ledger's sums by days are read, and before and after them its periods.
_LINES = f"""
WITH used AS (
    SELECT {_COLUMNS} FROM usage_periods WHERE starts_at >= $1 AND starts_at < $11 AND {_WHOSE}
    UNION ALL
    SELECT {_COLUMNS} FROM usage_days WHERE starts_at >= $11 AND starts_at < $12 AND {_WHOSE}
    UNION ALL
    SELECT {_COLUMNS} FROM usage_periods WHERE starts_at >= $12 AND starts_at < $2 AND {_WHOSE}
    UNION ALL
    SELECT {_COLUMNS} FROM usage_parts WHERE {_WHERE}
    UNION ALL
    SELECT m.database_uuid, m.team_id, m.plan, m.region, s.starts_at, s.ends_at, s.runtime_seconds,
           s.storage_byte_seconds, s.backup_byte_seconds
    FROM usage_meters m CROSS JOIN LATERAL usage_split(m, $8, $9) s
    WHERE m.team_id IS NOT NULL AND ($3::bigint[] IS NULL OR m.team_id = any($3))
      AND ($4::uuid[] IS NULL OR m.database_uuid = any($4)) AND s.starts_at >= $1 AND s.starts_at < $2
      AND (s.runtime_seconds > 0 OR s.storage_byte_seconds > 0 OR s.backup_byte_seconds > 0)
), lines AS (
    SELECT {{begin}} AS starts_at, max(ends_at) AS ends_at, {{key}}::text COLLATE "C" AS key, min(team_id) AS team_id,
           max(ends_at) > $10 AS open,
           sum(runtime_seconds)::bigint AS runtime_seconds,
           -- As text, which has all digits and no exponent.
           sum(storage_byte_seconds)::text AS storage_byte_seconds,
           sum(backup_byte_seconds)::text AS backup_byte_seconds
    FROM used GROUP BY 1, {{key}}
)
SELECT * FROM lines WHERE $5::timestamptz IS NULL OR (starts_at, key) > ($5, $6::text COLLATE "C")
ORDER BY starts_at, key LIMIT $7
"""  # noqa: S608 - our own words
_BEGINS = {
    Granularity.PERIOD: "starts_at",
    Granularity.DAY: "date_trunc('day', starts_at, 'UTC')",
    Granularity.MONTH: "date_trunc('month', starts_at, 'UTC')",
    Granularity.TOTAL: "$1::timestamptz",
}
_KEYS = {
    GroupBy.DATABASE: "database_uuid",
    GroupBy.TEAM: "team_id",
    GroupBy.PLAN: "plan",
    GroupBy.REGION: "region",
}


async def read_clock() -> Clock:
    clock = await fetch_one(
        Clock, "SELECT greatest(usage_now(), closed_through) AS now, closed_through, period_seconds FROM usage_clock"
    )
    assert clock is not None, "it has one row"
    return clock


async def read_lines(query: UsageQuery, clock: Clock, *, after: UsageCursor | None, limit: int) -> list[UsageLine]:
    """At most `limit` lines, by time and group, from the one that follows `after` on. Lines of closed periods never
    change."""
    # A window of time after the other: a page of a month's hours doesn't add up the month.
    begin = query.since if after is None else max(query.since, after.starts_at)
    lines: list[UsageLine] = []
    span = _first_window(query.granularity)
    while begin < query.until and len(lines) < limit:
        end = query.until if span is None else min(query.until, _window_end(query.granularity, begin, span))
        lines += await _read(query, clock, begin, end, after, limit - len(lines))
        begin, span = end, None if span is None else span * _WINDOW_GROWTH
    return lines


async def stream_lines(query: UsageQuery, clock: Clock, *, page: int) -> AsyncIterator[list[UsageLine]]:
    """All lines, page by page. Nothing of our database is held between two pages, however slowly they are taken."""
    after: UsageCursor | None = None
    while lines := await read_lines(query, clock, after=after, limit=page):
        yield lines
        if len(lines) < page:
            return
        after = UsageCursor(lines[-1].starts_at, lines[-1].key)


def _first_window(granularity: Granularity) -> timedelta | None:
    match granularity:
        case Granularity.PERIOD:
            return timedelta(hours=6)
        case Granularity.DAY:
            return timedelta(days=2)
        case Granularity.MONTH | Granularity.TOTAL:
            return None
        case _:
            assert_never(granularity)


def _window_end(granularity: Granularity, begin: datetime, span: timedelta) -> datetime:
    """Where a window that begins there ends: never within a day of a report by days."""
    end = begin + span
    if granularity is Granularity.DAY:
        end = _midnight(end)
    return end


async def _read(
    query: UsageQuery, clock: Clock, begin: datetime, end: datetime, after: UsageCursor | None, limit: int
) -> Sequence[UsageLine]:
    sql = _LINES.format(begin=_BEGINS[query.granularity], key=_KEYS[query.group_by])
    cursor = (None, None) if after is None else (after.starts_at, after.key)
    known = (clock.now, clock.period_seconds, clock.closed_through)
    days = _whole_days(query.granularity, begin, end)
    return await fetch_all(UsageLine, sql, begin, end, query.team_ids, query.databases, *cursor, limit, *known, *days)


def _whole_days(granularity: Granularity, begin: datetime, end: datetime) -> tuple[datetime, datetime]:
    """The beginning and the end of the whole days within a span of time. Both are the span's end where there are none,
    and for reports by periods, which know no days."""
    if granularity is Granularity.PERIOD:
        return end, end
    first, last = _midnight(begin + timedelta(days=1, microseconds=-1)), _midnight(end)
    return (first, last) if first < last else (end, end)


def _midnight(moment: datetime) -> datetime:
    """The last midnight until that moment, in UTC."""
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
