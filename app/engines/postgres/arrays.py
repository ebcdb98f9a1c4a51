"""PostgreSQL's text form of arrays, `{a,"b c",NULL}`, as lists."""

import re
from collections.abc import Callable, Iterator
from typing import Any

_TOKEN = re.compile(r'([{},])|"((?:[^"\\]|\\.)*)"|([^{},"]+)', re.DOTALL)
_BOUNDS = re.compile(r"\A(?:\[-?\d+:-?\d+\])+=")


def parse(text: str, element: Callable[[str], Any]) -> Any:
    """Nested lists; `element` converts each element's text. Lower bounds other than 1 are dropped."""
    tokens = iter(_TOKEN.findall(_BOUNDS.sub("", text)))
    next(tokens)
    return _items(tokens, element)


def _items(tokens: Iterator[tuple[str, str, str]], element: Callable[[str], Any]) -> list[Any]:
    items: list[Any] = []
    for mark, quoted, bare in tokens:
        if mark == "{":
            items.append(_items(tokens, element))
        elif mark == "}":
            return items
        elif mark == ",":
            continue
        elif bare:
            items.append(None if bare == "NULL" else element(bare))
        else:
            items.append(element(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)))
    return items
