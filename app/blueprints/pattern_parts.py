"""How large a regular expression is for the engine that compiles it. A text that is no pattern, or is misread here,
gets some number all the same: the engine has the last word, and a limit of its own."""

import re
from collections.abc import Iterator

WIDE = 10
"""How many parts a class with hundreds of ranges counts for, such as `\\w`: the engine writes out all of them."""
_PIECE = re.compile(
    r"(?P<wide>\\[wW]|\\[pP](?:\{[^}]*\}|.))"
    r"|(?P<plain>\\(?:[xuU]\{[^}]*\}|.))"
    r"|(?P<flags>\(\?[a-zA-Z-]*\))"
    r"|(?P<open>\((?:\?(?:P?<\w+>|[a-zA-Z-]*:))?)"
    r"|(?P<close>\))"
    r"|(?P<repeat>\{[\s0-9,]*\})"
    r"|(?P<class>\[\^?\]?)"
    r"|(?P<end>\])"
    r"|(?P<mark>[*+?])"
    r"|(?P<place>[|^$])"
    r"|(?P<other>.)",
    re.DOTALL,
)
_NUMBER = re.compile("[0-9]+")


def parts_of(pattern: str) -> int:
    """About how many characters and classes the pattern has with its counted repetitions written out: `(ab?){3}` has 6,
    and `[a-z]{1,63}` has 63."""
    outside: list[int] = []
    total = last = 0
    for kind, number in _pieces(pattern):
        match kind:
            case "open":
                outside.append(total)
                total = last = 0
            case "close":
                last = total
                total += outside.pop() if outside else 0
            case "repeat":
                total += last * (number - 1)
                last *= number
            case _:
                total += number
                last = number
    return total


def _pieces(pattern: str) -> Iterator[tuple[str, int]]:
    """The kind of each piece with its parts; of a repetition, with how often it repeats at most. A class of characters
    is one piece."""
    depth, parts = 0, 1
    for match in _PIECE.finditer(pattern):
        kind = str(match.lastgroup)
        if kind == "class":
            depth, parts = depth + 1, parts if depth else 1
        elif depth:
            depth -= kind == "end"
            parts = WIDE if kind == "wide" else parts
            if not depth:
                yield "class", parts
        elif kind == "repeat":
            yield kind, max([1, *map(int, _NUMBER.findall(match.group()))])
        elif kind not in ("mark", "flags"):
            yield kind, {"wide": WIDE, "open": 0, "close": 0, "place": 0}.get(kind, 1)
