"""PostgreSQL's text form of arrays, `{a,"b c",NULL}`, as lists."""

import re
from collections.abc import Callable, Iterator
from typing import Any

LONGEST = 1024 * 1024
"""The longest text that becomes a list, in characters. A list takes seventy times as much memory as its text, and half
a second for each million."""
# Possessive: of a long element nothing is remembered to be tried again.
_TOKEN = re.compile(r'([{},])|"((?:[^"\\]++|\\.)*+)"|([^{},"]++)', re.DOTALL)
_MARK, _QUOTED = 1, 2
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_BOUNDS = re.compile(r"\A(?:\[-?\d+:-?\d+\])+=")


def parse(text: str, element: Callable[[str], Any]) -> Any:
    """Nested lists; `element` converts each element's text. Lower bounds other than 1 are dropped. A text beyond
    `LONGEST` is returned as it is."""
    if len(text) > LONGEST:
        return text
    tokens = _TOKEN.finditer(_BOUNDS.sub("", text))
    next(tokens)
    return _items(tokens, element)


def _items(tokens: Iterator[re.Match[str]], element: Callable[[str], Any]) -> list[Any]:
    items: list[Any] = []
    for token in tokens:
        kind = token.lastindex
        found = token[kind or 0]
        if kind == _QUOTED:
            items.append(element(_ESCAPED.sub(r"\1", found)))
        elif kind != _MARK:
            items.append(None if found == "NULL" else element(found))
        elif found == "{":
            items.append(_items(tokens, element))
        elif found == "}":
            return items
    return items
