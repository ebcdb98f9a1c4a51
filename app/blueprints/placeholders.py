"""`{{name}}` in a script: where it stands as code, and what is put there.

A sample is as long as its placeholder, so positions in a script with samples are positions in the script.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from app.blueprints.variables import VariableType
from app.dialects.analysis import MAX_FAULTS, ScriptFault
from app.dialects.base import Dialect
from app.dialects.errors import SqlError

_PLACEHOLDER = re.compile(r"\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*\}\}")
_GLUE = re.compile(r"[\w$@&#'\"`{}\\]")


@dataclass(frozen=True, slots=True)
class Placeholder:
    name: str
    start: int
    end: int


def _start(item: Placeholder) -> int:
    return item.start


@dataclass(slots=True)
class Placeholders:
    """The placeholders of one script, read as one engine's SQL."""

    found: list[Placeholder] = field(default_factory=list)
    """In the order of the script."""
    faults: list[ScriptFault] = field(default_factory=list)
    in_literals: list[Placeholder] = field(default_factory=list)
    """Places that look like placeholders, and are data: in a string, a dollar-quoted body, a quoted name or a
    comment."""

    def between(self, start: int, end: int) -> list[Placeholder]:
        first = bisect_left(self.found, start, key=_start)
        return self.found[first : bisect_left(self.found, end, lo=first, key=_start)]


def names_in(script: str) -> Iterator[str]:
    """The name of each place that looks like a placeholder, in literals too: fast, and rather too many than too few."""
    return (match.group(1) for match in _PLACEHOLDER.finditer(script))


def find(script: str, dialect: Dialect) -> Placeholders:
    """A script's placeholders; `faults` are those that are written wrong. Of a script that can't be read to its end, it
    has those before that place."""
    result = Placeholders()
    if "{{" not in script:
        return result
    done = 0
    try:
        for token in dialect.tokens(script):
            if token.start < done:
                continue
            if len(result.faults) > MAX_FAULTS:
                break
            if token.is_code:
                if script.startswith("{{", token.start):
                    done = _take(script, token.start, result)
            else:
                matches = _PLACEHOLDER.finditer(script, token.start, token.end)
                result.in_literals += [Placeholder(match.group(1), *match.span()) for match in matches]
    except SqlError:
        pass  # the analysis reports it
    return result


def _take(script: str, start: int, result: Placeholders) -> int:
    match = _PLACEHOLDER.match(script, start)
    if match is None:
        message = "a placeholder is written {{name}}, with letters, digits and _ in the name"
        result.faults.append(ScriptFault(start, message))
        return start + 2
    placeholder = Placeholder(match.group(1), start, match.end())
    before, after = script[start - 1 : start], script[match.end() : match.end() + 1]
    if _GLUE.fullmatch(before) or _GLUE.fullmatch(after):
        message = (
            f"{match.group()} touches what stands beside it; a placeholder is a whole name or value, "
            "so declare a variable for all of it"
        )
        result.faults.append(ScriptFault(start, message))
    result.found.append(placeholder)
    return match.end()


def with_samples(script: str, found: list[Placeholder], types: Mapping[str, VariableType], dialect: Dialect) -> str:
    """The script with a sample for each placeholder. Names without a type count as identifiers."""
    pieces = []
    done = 0
    for item in found:
        pieces += [script[done : item.start], _sample(item, types.get(item.name, VariableType.IDENTIFIER), dialect)]
        done = item.end
    return "".join([*pieces, script[done:]])


def _sample(item: Placeholder, kind: VariableType, dialect: Dialect) -> str:
    length = item.end - item.start
    match kind:
        case VariableType.IDENTIFIER:
            mark = dialect.name_mark
            return mark + f"{{{item.name}}}".ljust(length - 2, "}") + mark
        case VariableType.INTEGER:
            return "1".rjust(length, "0")
        case VariableType.NUMBER:
            return "1.5".rjust(length, "0")
        case VariableType.BOOLEAN:
            return "TRUE".ljust(length)
        case _:
            return "'" + f"{{{item.name}}}".ljust(length - 2, "}") + "'"


def as_written(text: str, names: set[str], values: Mapping[str, str] | None = None) -> str:
    """A message about a script with samples, with the placeholders, or their values, in the samples' place."""
    if "{" not in text:
        return text

    def instead(match: re.Match[str]) -> str:
        name = match.group(1)
        if values is not None and name in values:
            return values[name]
        return f"{{{{{name}}}}}" if name in names else match.group()

    return re.sub(r"[\"'`]?(?<!\{)\{([A-Za-z_][A-Za-z0-9_]*)\}+[\"'`]?", instead, text)
