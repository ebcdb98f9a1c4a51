"""Columns that several tables use."""

from piccolo.columns import Timestamptz
from piccolo.columns.defaults.timestamptz import TimestamptzNow


def created_at() -> Timestamptz:
    return Timestamptz(default=TimestamptzNow())


def moment() -> Timestamptz:
    """A time that may not be known yet."""
    return Timestamptz(null=True, default=None)
