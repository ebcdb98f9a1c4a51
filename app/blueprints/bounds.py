"""How large definitions of variables and their values may be. The bounds are for what is saved or asked for now: what
was saved before there were bounds is applied as it is."""

from collections.abc import Mapping
from typing import Any

import msgspec

from app.blueprints.pattern_parts import parts_of
from app.blueprints.patterns import MAX_PATTERN
from app.blueprints.variables import DefinitionError

MAX_BYTES = 64 * 1024
"""The limit of a blueprint's definitions, and of an application's values, each as JSON. A list has a hundred of
them."""
MAX_PARTS = 5000
"""The most parts that all different patterns of a blueprint have together: to compile them takes about a second at
most."""


def size_of(value: object) -> int:
    """The value's size as JSON, in bytes."""
    return len(msgspec.json.encode(value))


def check_new(definitions: Mapping[str, Any]) -> None:
    """Checks the bounds of definitions before they are read any further. Raises `DefinitionError`."""
    size = size_of(definitions)
    if size > MAX_BYTES:
        raise DefinitionError(None, None, f"the definitions have {size} bytes as JSON, and may have {MAX_BYTES}")
    _check_patterns(definitions)


def _check_patterns(definitions: Mapping[str, Any]) -> None:
    parts: dict[str, int] = {}
    for name, given in definitions.items():
        pattern = given.get("pattern") if isinstance(given, Mapping) else None
        # A longer pattern is refused for its length.
        if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN:
            continue
        parts[pattern] = parts_of(pattern)
        if sum(parts.values()) > MAX_PARTS:
            rule = f"with repetitions written out, all patterns of a blueprint have at most {MAX_PARTS} parts together"
            raise DefinitionError(name, "pattern", rule)
