"""The time, in one replaceable place."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The current time, aware, in UTC."""
    return datetime.now(UTC)
