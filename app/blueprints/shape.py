"""Proof that values changed nothing but themselves: the same tokens around them, and one token for each."""

import re

from app.dialects.base import Dialect
from app.dialects.errors import SqlError

Span = tuple[int, int]
_NUMBER = re.compile(r" ?-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")


def same_shape(sample: str, sample_spans: list[Span], filled: str, filled_spans: list[Span], dialect: Dialect) -> bool:
    """Whether two forms of one statement differ only in the values, which stand in the spans. A number counts as one
    token, with its sign and its point."""
    expected = _skeleton(sample, sample_spans, dialect)
    return expected is not None and expected == _skeleton(filled, filled_spans, dialect)


def _skeleton(text: str, spans: list[Span], dialect: Dialect) -> list[str] | None:
    """The tokens with an empty text for each value; None if a value is no token of its own."""
    skeleton: list[str] = []
    counts = [0] * len(spans)
    index = 0
    try:
        for token in dialect.tokens(text):
            while index < len(spans) and spans[index][1] <= token.start:
                index += 1
            if index == len(spans) or token.end <= spans[index][0]:
                skeleton.append(text[token.start : token.end])
                continue
            start, end = spans[index]
            if token.start < start or token.end > end:
                return None
            counts[index] += 1
            if counts[index] == 1:
                skeleton.append("")
    except SqlError:
        return None
    alone = all(
        count == 1 or (count > 1 and _NUMBER.fullmatch(text, *span)) for count, span in zip(counts, spans, strict=True)
    )
    return skeleton if alone else None
