"""The query of a usage report, read from the text of query parameters and of the command line."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

from app.core.errors import InvalidField
from app.usage.report import Granularity, GroupBy, UsageCursor, UsageQuery
from app.web.parameters import parse_id, parse_uuid, query_moment

LONGEST = timedelta(days=400)
"""The longest range of one report."""
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST = datetime(3000, 1, 1, tzinfo=UTC)
Choice = TypeVar("Choice", bound=StrEnum)


def read_query(
    *,
    since: str | None,
    until: str | None,
    group_by: str,
    granularity: str,
    now: datetime,
    team_ids: list[int] | None = None,
    databases: list[UUID] | None = None,
) -> UsageQuery:
    """Reads a query. Without an end it goes to `now`; without a beginning it starts with the month. Raises
    `InvalidField`."""
    begin = None if since is None else _moment("from", since)
    # What begins in the present second is part of it.
    end = now + timedelta(seconds=1) if until is None else _moment("to", until)
    begin = begin or _month_of(min(end - timedelta(seconds=1), now))
    if begin >= end:
        raise InvalidField("from" if until is None else "to", "Expected an end after the beginning.")
    if end - begin > LONGEST:
        raise InvalidField("from", f"A report covers at most {LONGEST.days} days.")
    return UsageQuery(
        since=begin,
        until=end,
        group_by=_choice("group_by", GroupBy, group_by),
        granularity=_choice("granularity", Granularity, granularity),
        team_ids=team_ids,
        databases=databases,
    )


def read_cursor(text: str | None, query: UsageQuery) -> UsageCursor | None:
    """Raises `InvalidField` for text that is not the `id` of a line in such a report."""
    if text is None:
        return None
    begin, _, key = text.partition("/")
    try:
        return UsageCursor(_moment("starting_after", begin), _key(query.group_by, key))
    except InvalidField:
        raise InvalidField("starting_after", "Expected the id of a line of this report.") from None


def line_id(starts_at: datetime, key: str) -> str:
    return f"{starts_at.astimezone(UTC).isoformat().replace('+00:00', 'Z')}/{key}"


def _key(group_by: GroupBy, text: str) -> str:
    known = {GroupBy.DATABASE: parse_uuid, GroupBy.TEAM: parse_id}.get(group_by, _word)(text)
    if known is None:
        raise InvalidField("starting_after", "")
    return str(known)


def _word(text: str) -> str | None:
    return text if re.fullmatch(r"[!-~]{1,255}", text) else None


def _choice(field: str, kind: type[Choice], text: str) -> Choice:
    try:
        return kind(text)
    except ValueError:
        raise InvalidField(field, f"Expected {_alternatives([one.value for one in kind])}.") from None


def _alternatives(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _moment(field: str, text: str) -> datetime:
    moment = query_moment(field, text, dates=True)
    if not _EARLIEST <= moment <= _LATEST:
        raise InvalidField(field, "Expected a year from 2000 on.")
    return moment


def _month_of(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
