"""Names as workflows' summaries and results carry them."""

import re

_MARKUP = re.compile(r"[^\w .-]")
_LONGEST = 30


def without_markup(name: str) -> str:
    """For the Temporal UI, which renders what it is told; and a name is whatever its team calls it."""
    return _MARKUP.sub("?", name)[:_LONGEST]
