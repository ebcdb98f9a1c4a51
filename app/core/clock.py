"""The current time, in one place that tests can replace, and its form in answers."""

from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta

Moment = Annotated[datetime, Meta(tz=True)]
"""A field of an answer: ISO 8601 with an offset."""


def utc_now() -> datetime:
    """The current time, aware, in UTC."""
    return datetime.now(UTC)
