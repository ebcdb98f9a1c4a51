"""What a client asks of metrics, checked: which, from when to when, in which steps."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from app.core.errors import InvalidField
from app.usage.metrics.names import MetricName
from app.usage.metrics.rollups import HOURS, RESOLUTIONS, Resolution, begin_of
from app.web.parameters import query_moment

AUTOMATIC = 0
STEPS = (60, 300, 900, 3600, 21_600, 86_400)
"""The steps that can be asked for, in seconds."""
MOST_POINTS = 2_200
"""The most points of one series: a week of five minutes, a day of minutes and 60 days of hours fit."""
_USUAL_POINTS = 500
"""The default step is the shortest that gives no more points."""
_DEFAULT_RANGE = timedelta(days=1)
_SLACK = timedelta(minutes=15)
"""A little more than is kept may be asked for: a request takes time, and clocks of clients differ."""
_LONGEST_TEXT = 40


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    names: tuple[MetricName, ...]
    since: datetime
    """The beginning of a step."""
    until: datetime
    step: int
    resolution: Resolution


def read(names: str | None, since: str | None, until: str | None, step: int, now: datetime) -> Asked:
    """Reads the query parameters `names`, `from`, `to` and `step`. Raises `InvalidField` that names one of them."""
    chosen = _names(names)
    end = now if until is None else query_moment("to", until)
    begin = end - _DEFAULT_RANGE if since is None else query_moment("from", since)
    if begin >= end:
        raise InvalidField("from", "Expected a time before to.")
    if begin < now - HOURS.retention - _SLACK:
        raise InvalidField("from", f"Metrics are kept for {HOURS.retention.days} days.")
    seconds = _step(step, begin, end, now)
    return Asked(names=chosen, since=begin_of(begin, seconds), until=end, step=seconds, resolution=_resolution(seconds))


def _names(text: str | None) -> tuple[MetricName, ...]:
    if text is None:
        return tuple(MetricName)
    known = {name.value: name for name in MetricName}
    for name in text.split(",", maxsplit=len(known)):
        if name not in known:
            shown = name[:_LONGEST_TEXT]
            raise InvalidField("names", f"There is no metric {shown!r}; there are {', '.join(known)}.")
    return tuple(dict.fromkeys(known[name] for name in text.split(",")))


def _step(asked: int, begin: datetime, end: datetime, now: datetime) -> int:
    offered = [step for step in STEPS if _fits(step, begin, end, now, MOST_POINTS)]
    if asked == AUTOMATIC:
        return next((step for step in offered if _fits(step, begin, end, now, _USUAL_POINTS)), STEPS[-1])
    if asked not in STEPS:
        raise InvalidField("step", f"Expected one of {_list(STEPS)}.")
    if asked not in offered:
        raise InvalidField("step", f"In steps of {asked} seconds these are too many or not kept: try {_list(offered)}.")
    return asked


def _fits(step: int, begin: datetime, end: datetime, now: datetime, points: int) -> bool:
    """Whether samples are kept so precisely for so long, and give no more than this number of points."""
    return (
        begin >= now - _resolution(step).retention - _SLACK
        and (end - begin_of(begin, step)).total_seconds() <= points * step
    )


def _resolution(step: int) -> Resolution:
    """The coarsest resolution that these steps can be made of."""
    return next(one for one in reversed(RESOLUTIONS) if one.seconds <= step)


def _list(steps: Sequence[int]) -> str:
    return ", ".join(map(str, steps))
