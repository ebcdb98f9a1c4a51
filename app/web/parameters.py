"""Path and query parameters that several resources share."""

import re
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from litestar.params import QueryParameter

from app.core.errors import InvalidField, NotFound

_LARGEST = 2**63 - 1
"""The largest bigint."""
_DATE = r"\d{4}-\d\d-\d\d"
_MOMENT = re.compile(_DATE + r"T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_YEARS = range(1970, 9000)

Limit = Annotated[int, QueryParameter(name="limit", ge=1, le=100, description="Items on the page.")]
StartingAfter = Annotated[
    str | None,
    QueryParameter(
        name="starting_after",
        description="Identifier of the previous page's last item.",
        schema_extra={"format": "uuid"},
    ),
]
StartingAfterId = Annotated[
    str | None,
    QueryParameter(
        name="starting_after",
        description="Identifier of the previous page's last item.",
        schema_extra={"type": "integer", "minimum": 1, "maximum": _LARGEST},
    ),
]
"""Text, which `cursor_id` reads: Litestar would take `null` for none given."""
StartingAfterName = Annotated[
    str | None,
    QueryParameter(
        name="starting_after",
        description="Name of the previous page's last item.",
        schema_extra={"maxLength": 255},
    ),
]
"""For lists whose items are known by their names."""
Wait = Annotated[bool, QueryParameter(name="wait", description="Answer when the work is done, or at the timeout.")]
Timeout = Annotated[int, QueryParameter(name="timeout", ge=1, le=120, description="Seconds to wait at most.")]


def path_uuid(text: str, what: str) -> UUID:
    """A malformed identifier in a path names nothing: raises `NotFound`."""
    uuid = parse_uuid(text)
    if uuid is None:
        raise NotFound(what)
    return uuid


def path_id(text: str, what: str) -> int:
    """The same for an identifier that is a number."""
    number = parse_id(text)
    if number is None:
        raise NotFound(what)
    return number


def cursor_id(text: str | None) -> int | None:
    """Raises `InvalidField` for what is no identifier."""
    if text is None:
        return None
    number = parse_id(text)
    if number is None:
        raise InvalidField("starting_after", "Expected a number from 1 on.")
    return number


def cursor_uuid(text: str | None) -> UUID | None:
    """Raises `InvalidField` for what is no uuid."""
    if text is None:
        return None
    uuid = parse_uuid(text)
    if uuid is None:
        raise InvalidField("starting_after", "Expected a uuid.")
    return uuid


def query_moment(field: str, text: str, *, dates: bool = False) -> datetime:
    """Reads a time in ISO 8601 with an offset, and returns it in UTC; with `dates` also a date, as its beginning in
    UTC. A `+` that was not encoded arrives as a blank. Raises `InvalidField`."""
    text = text.replace(" ", "+")
    moment = None
    if _MOMENT.fullmatch(text) or (dates and re.fullmatch(_DATE, text, re.ASCII)):
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            moment = None
    if moment is None or moment.year not in _YEARS:
        expected = "a date, or a time with its offset," if dates else "a time with its offset,"
        raise InvalidField(field, f"Expected {expected} such as 2026-11-20T08:00:00Z.")
    return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)


def parse_uuid(text: str) -> UUID | None:
    """Reads a uuid in the canonical form of 36 characters only; Python's own parser takes braces and URNs too."""
    try:
        uuid = UUID(text)
    except ValueError:
        return None
    return uuid if str(uuid) == text.lower() else None


def parse_id(text: str) -> int | None:
    """Reads a number of digits alone; Python's own parser takes signs, blanks and underscores too."""
    number = int(text) if re.fullmatch(r"[1-9][0-9]{0,18}", text, re.ASCII) else 0
    return number if 1 <= number <= _LARGEST else None
