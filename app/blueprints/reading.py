"""A script read as each engine's SQL, placeholders and all."""

from collections.abc import Mapping, Set
from dataclasses import dataclass

from app.blueprints import placeholders
from app.blueprints.placeholders import Placeholders
from app.blueprints.variables import Definition, VariableType
from app.contracts.base import Engine
from app.dialects.analysis import Analysis
from app.dialects.base import Dialect
from app.dialects.registry import DIALECTS

# What an undeclared placeholder may stand for, the likeliest first.
_GUESSES = (VariableType.IDENTIFIER, VariableType.INTEGER, VariableType.STRING)
MAX_GUESSES = 40
_READ_TO_GUESS = 2_000_000
"""Characters that are read again for guesses, all together: each guess reads the script anew."""

_SIGN_CHARACTERS = 100_000
"""Signs are sought in the beginning of a script."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one engine would make of the script. Positions in `analysis` are the script's."""

    analysis: Analysis
    placeholders: Placeholders
    sampled: str


def read(
    script: str,
    engine: Engine,
    definitions: Mapping[str, Definition] | None,
    *,
    thorough: bool = True,
    provided: Set[str] = frozenset(),
) -> Reading:
    """Reads a script as one engine's SQL. With `definitions` None any placeholder may be there, and stands for whatever
    fits. Unless `thorough`, the first fault ends the reading. `provided` are the extensions that engine hosts offer."""
    dialect = DIALECTS[engine]
    found = placeholders.find(script, dialect)
    types = {name: definition.type for name, definition in (definitions or {}).items()}
    reading = _read(script, dialect, found, types, thorough, provided)
    if definitions is None:
        return _guess(script, reading, types, thorough, provided)
    for item in found.found:
        if item.name not in definitions:
            reading.analysis.reject(item.start, f"{{{{{item.name}}}}} is not declared among the variables")
    return reading


def likelier(script: str) -> Engine | None:
    """The engine that a script seems to be written for; None when there are no signs, or as many for another."""
    beginning = script[:_SIGN_CHARACTERS]
    counts = {engine: len(dialect.signs.findall(beginning)) for engine, dialect in DIALECTS.items()}
    most = max(counts.values())
    likely = [engine for engine, count in counts.items() if count == most]
    return likely[0] if len(likely) == 1 else None


def _read(
    script: str,
    dialect: Dialect,
    found: Placeholders,
    types: Mapping[str, VariableType],
    thorough: bool,
    provided: Set[str],
) -> Reading:
    sampled = placeholders.with_samples(script, found.found, types, dialect)
    analysis = dialect.analyze(sampled, thorough=thorough, extensions=provided)
    for fault in found.faults:
        analysis.reject(fault.offset, fault.message)
    analysis.faults.sort(key=lambda fault: fault.offset)
    return Reading(analysis, found, sampled)


def _guess(
    script: str, reading: Reading, types: dict[str, VariableType], thorough: bool, provided: Set[str]
) -> Reading:
    """Tries other kinds of values where the sample is what doesn't parse."""
    dialect = DIALECTS[reading.analysis.engine]
    for _ in range(min(MAX_GUESSES, 1 + _READ_TO_GUESS // max(len(script), 1))):
        at = {item.start: item for item in reading.placeholders.found}
        blamed = next((at[fault.offset] for fault in reading.analysis.faults if fault.offset in at), None)
        if blamed is None:
            break
        tried = _GUESSES.index(types.get(blamed.name, VariableType.IDENTIFIER))
        if tried + 1 == len(_GUESSES):
            break
        types[blamed.name] = _GUESSES[tried + 1]
        reading = _read(script, dialect, reading.placeholders, types, thorough, provided)
    return reading
