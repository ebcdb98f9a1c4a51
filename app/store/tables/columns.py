"""Columns that many tables have."""

from piccolo.columns import Timestamptz
from piccolo.columns.defaults.timestamptz import TimestamptzNow


def created_at() -> Timestamptz:
    return Timestamptz(default=TimestamptzNow())


def moment() -> Timestamptz:
    """A moment that may not have come yet."""
    return Timestamptz(null=True, default=None)
