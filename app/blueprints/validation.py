"""Whether a script can be a blueprint, for which engines, and what is in it: interface specification, section 2.9."""

from collections.abc import Mapping, Set
from typing import Any

import msgspec

from app.blueprints import placeholders
from app.blueprints.reading import Reading, likelier, read
from app.blueprints.variables import VariableType, check_definitions
from app.contracts.base import Engine
from app.dialects.analysis import MAX_FAULTS, Analysis
from app.dialects.positions import Lines
from app.dialects.registry import DIALECTS

MAX_WARNINGS = 100
_SHOWN_LINES = 5


class ManifestStatement(msgspec.Struct, frozen=True, kw_only=True):
    """One statement; `index` and `line` count from 1. `left_out` says why applying doesn't run it."""

    index: int
    line: int
    kind: str
    object: str | None
    object_type: str | None
    left_out: str | None


class ManifestVariable(msgspec.Struct, frozen=True, kw_only=True):
    """One placeholder's name; `type` is None where it isn't declared."""

    type: VariableType | None
    lines: list[int]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a script. `objects` are those that it makes, by type; `extensions` are PostgreSQL's."""

    dialects: list[Engine]
    statements: list[ManifestStatement]
    objects: dict[str, list[str]]
    extensions: list[str]
    variables: dict[str, ManifestVariable]


class Validation(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a validation. Every error has its line and column."""

    valid: bool
    statement_count: int
    errors: list[str]
    warnings: list[str]
    manifest: Manifest


def validate(sql: str, definitions: Mapping[str, Any] | None, provided: Set[str] = frozenset()) -> Validation:
    """Reads a script as the SQL of each engine.

    With `definitions` None any placeholder may be there; otherwise each must be declared. A script of 1 MiB takes
    about a second of one core: call it in a thread. `provided` are the extensions that
    engine hosts offer. Raises `DefinitionError`.
    """
    declared = None if definitions is None else check_definitions(definitions)
    likely = likelier(sql)
    readings = [
        read(sql, engine, declared, thorough=likely in (None, engine), provided=provided) for engine in DIALECTS
    ]
    lines = Lines(sql)
    accepted = [reading for reading in readings if reading.analysis.valid]
    if not any(reading.analysis.statements for reading in accepted):
        accepted = []
    # The engines' grammars overlap: what is forbidden for the one may be nonsense that parses for the other.
    forbidden = [
        reading for reading in readings if reading.analysis.forbidden and likely in (None, reading.analysis.engine)
    ]
    if forbidden:
        accepted = []
    best = _best(accepted or forbidden or readings, likely)
    used = {item.name for item in best.placeholders.found}
    types = {name: definition.type for name, definition in (declared or {}).items()}
    return Validation(
        valid=bool(accepted),
        statement_count=len(best.analysis.statements),
        errors=[] if accepted else _errors(readings, best, likely, lines),
        warnings=_warnings(best, used, set(types), lines),
        manifest=Manifest(
            dialects=[reading.analysis.engine for reading in accepted],
            statements=_statements(best.analysis, used, lines),
            objects=_objects(best.analysis, used),
            extensions=list(best.analysis.extensions),
            variables=_variables(best, types, lines),
        ),
    )


def _variables(reading: Reading, types: Mapping[str, VariableType], lines: Lines) -> dict[str, ManifestVariable]:
    found: dict[str, set[int]] = {}
    for item in reading.placeholders.found:
        found.setdefault(item.name, set()).add(lines.line(item.start))
    return {name: ManifestVariable(type=types.get(name), lines=sorted(found[name])) for name in sorted(found)}


def _best(readings: list[Reading], likely: Engine | None) -> Reading:
    """The reading that the verdict speaks of: the likely engine's, else the one that got furthest."""
    for reading in readings:
        if reading.analysis.engine is likely:
            return reading
    return min(readings, key=lambda reading: (not reading.analysis.valid, len(reading.analysis.faults)))


def _errors(readings: list[Reading], best: Reading, likely: Engine | None, lines: Lines) -> list[str]:
    reported = [best] if likely is not None or best.analysis.forbidden else readings
    errors = []
    for reading in reported:
        analysis = reading.analysis
        names = {item.name for item in reading.placeholders.found}
        label = DIALECTS[analysis.engine].label
        if analysis.valid:
            errors.append("line 1, column 1: the script holds no statement")
        for fault in analysis.faults[:MAX_FAULTS]:
            message = placeholders.as_written(fault.message, names)
            errors.append(f"{lines.place(fault.offset)} ({label}): {message}")
        if len(analysis.faults) > MAX_FAULTS:
            more = len(analysis.faults) - MAX_FAULTS
            place = lines.place(analysis.faults[MAX_FAULTS].offset)
            errors.append(f"{place} ({label}): {more} more errors from here on")
    return list(dict.fromkeys(errors))


def _warnings(reading: Reading, used: set[str], declared: set[str], lines: Lines) -> list[str]:
    """One line for each rule and message, with the lines where it applies."""
    places: dict[tuple[str, str], list[int]] = {}
    for notice in reading.analysis.notices:
        places.setdefault((notice.rule, notice.message), []).append(lines.line(notice.offset))
    warnings = [
        f"{_places(found)}: {placeholders.as_written(message, used)} ({rule})"
        for (rule, message), found in places.items()
    ]
    for item in reading.placeholders.in_literals:
        if item.name in declared:
            warnings.append(
                f"line {lines.line(item.start)}: {{{{{item.name}}}}} stands inside quotes or a comment and is "
                "left as it is; as a value it stands without quotes (placeholder-in-literal)"
            )
    warnings += [f"the variable {name} is declared and not used (unused-variable)" for name in sorted(declared - used)]
    if len(warnings) > MAX_WARNINGS:
        more = len(warnings) - MAX_WARNINGS
        warnings = [*warnings[:MAX_WARNINGS], f"and {more} more warnings"]
    return warnings


def _places(found: list[int]) -> str:
    shown = [str(line) for line in dict.fromkeys(found)]
    if len(shown) == 1:
        return f"line {shown[0]}"
    if len(shown) <= _SHOWN_LINES:
        return f"lines {', '.join(shown[:-1])} and {shown[-1]}"
    return f"lines {', '.join(shown[:_SHOWN_LINES])} and {len(shown) - _SHOWN_LINES} more"


def _statements(analysis: Analysis, used: set[str], lines: Lines) -> list[ManifestStatement]:
    return [
        ManifestStatement(
            index=index,
            line=lines.line(found.start),
            kind=found.kind,
            object=found.object and placeholders.as_written(found.object, used),
            object_type=found.object_type,
            left_out=found.left_out,
        )
        for index, found in enumerate(analysis.statements, start=1)
    ]


def _objects(analysis: Analysis, used: set[str]) -> dict[str, list[str]]:
    made: dict[str, dict[str, None]] = {}
    for found in analysis.statements:
        if found.makes and found.object and found.object_type and found.object_type != "extension":
            names = made.setdefault(_plural(found.object_type), {})
            names[placeholders.as_written(found.object, used)] = None
    return {kind: list(names) for kind, names in made.items()}


def _plural(word: str) -> str:
    if word in ("index", "statistics"):
        return {"index": "indexes", "statistics": "statistics"}[word]
    return word[:-1] + "ies" if word.endswith("y") else word + "s"
