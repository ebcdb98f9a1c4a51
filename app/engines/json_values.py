"""Values of either engine as lossless JSON."""

import base64
import math
import re
from typing import Any

import msgspec

_EXACT = 2**53 - 1
"""The largest integer that every JSON client reads exactly (RFC 8259, section 6)."""

_LARGE = 1024 * 1024
# Whether a number may be beyond a double's range: one with fewer digits and a shorter exponent isn't.
_MAY_BE_HUGE = re.compile(r"[eE]\+?\d{3}|(?<!\d)\d{200}", re.ASCII)


def integer(value: int) -> int | str:
    """A number, or a string if a double can't represent it exactly."""
    return value if -_EXACT <= value <= _EXACT else str(value)


def floating(value: float) -> float | str:
    """JSON has no `NaN` and no infinity: those are strings."""
    return value if math.isfinite(value) else {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")


def binary(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def document(text: str) -> Any:
    """JSON text unchanged, with every digit; a string if it isn't valid JSON, or no client may be able to read it."""
    may_be_huge = _MAY_BE_HUGE.search(text) is not None
    if may_be_huge and len(text) > _LARGE:
        return text
    try:
        # Otherwise nothing is made of it: its objects would take up to thirty times its memory.
        msgspec.json.decode(text, type=Any if may_be_huge else msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return text
    return msgspec.Raw(text.encode())


def size(value: Any) -> int:
    """The approximate size of the value in bytes."""
    if isinstance(value, str):
        return len(value) + 4
    if isinstance(value, msgspec.Raw):
        return len(bytes(value))
    if isinstance(value, list):
        return sum(map(size, value)) + 4
    return 8
