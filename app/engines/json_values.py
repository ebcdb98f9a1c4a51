"""Values of either engine as lossless JSON."""

import base64
import math
from typing import Any

import msgspec

_EXACT = 2**53 - 1
"""The largest integer that every JSON client reads exactly (RFC 8259, section 6)."""


def integer(value: int) -> int | str:
    """A number, or a string if a double can't represent it exactly."""
    return value if -_EXACT <= value <= _EXACT else str(value)


def floating(value: float) -> float | str:
    """JSON has no `NaN` and no infinity: those are strings."""
    return value if math.isfinite(value) else {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")


def binary(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def document(text: str) -> Any:
    """JSON text unchanged, with every digit; a string if it isn't valid JSON."""
    try:
        msgspec.json.decode(text)
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
