"""A script read as each engine's SQL, placeholders and all."""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass

from app.blueprints import placeholders
from app.blueprints.placeholders import Placeholders
from app.blueprints.variables import Definition, VariableType
from app.contracts.base import Engine
from app.dialects.analysis import Analysis
from app.dialects.mysql import scripts as mysql
from app.dialects.postgres import scripts as postgres

# What an undeclared placeholder may stand for, the likeliest first.
_GUESSES = (VariableType.IDENTIFIER, VariableType.INTEGER, VariableType.STRING)
MAX_GUESSES = 40
_READ_TO_GUESS = 2_000_000
"""Characters that are read again for guesses, all together: each guess reads the script anew."""

_SIGNS = {
    Engine.MYSQL: re.compile(
        r"`|^[ \t]*+DELIMITER\b|\bENGINE\s*+=|\bAUTO_INCREMENT\b|/\*!|^[ \t]*+#|\bUNSIGNED\b"
        r"|\bLOCK TABLES\b|\bCHARSET\b|\bTINYINT\b|\bDATETIME\b|\bMEDIUMTEXT\b|\bON DUPLICATE KEY\b|\bSQL_MODE\b",
        re.IGNORECASE | re.MULTILINE,
    ),
    Engine.POSTGRES: re.compile(
        r"\$\$|::|\b(?:SMALL|BIG)?SERIAL\b|\bpg_catalog\b|\bplpgsql\b|\bEXTENSION\b|\bTIMESTAMPTZ\b|\bJSONB\b|\bBYTEA\b"
        r"|\bOWNER TO\b|\bRETURNING\b|\bON CONFLICT\b|\bpublic\.|^[ \t]*+\\|\bVACUUM\b|\bCONCURRENTLY\b|\bILIKE\b",
        re.IGNORECASE | re.MULTILINE,
    ),
}
_LOOKED_AT = 100_000


@dataclass(frozen=True, slots=True)
class Reading:
    """What one engine would make of the script. Positions in `analysis` are the script's."""

    analysis: Analysis
    placeholders: Placeholders
    sampled: str


def read(
    script: str,
    dialect: Engine,
    definitions: Mapping[str, Definition] | None,
    *,
    thorough: bool = True,
    provided: Set[str] = frozenset(),
) -> Reading:
    """`definitions` None: any placeholder may be there, and stands for whatever fits. Unless `thorough`, the first
    fault ends it. `provided` are the extensions that engine hosts offer."""
    found = placeholders.find(script, dialect)
    types = {name: definition.type for name, definition in (definitions or {}).items()}
    reading = _read(script, dialect, found, types, thorough, provided)
    if definitions is None:
        return _guess(script, reading, types, thorough, provided)
    for item in found.found:
        if item.name not in definitions:
            reading.analysis.reject(item.start, f"{{{{{item.name}}}}} is not declared among the variables")
    return reading


def analyze(
    script: str,
    dialect: Engine,
    *,
    single: bool = False,
    thorough: bool = True,
    provided: Set[str] = frozenset(),
) -> Analysis:
    """`script` holds no placeholders. `single`: it was cut out of a script as one statement. Unless `thorough`, the
    first fault ends it."""
    if dialect is Engine.POSTGRES:
        return postgres.analyze(script, thorough=thorough, provided=provided)
    return mysql.analyze(script, single=single, thorough=thorough)


def likelier(script: str) -> Engine | None:
    """The engine that a script seems to be written for; None when nothing tells."""
    looked_at = script[:_LOOKED_AT]
    counts = {engine: len(sign.findall(looked_at)) for engine, sign in _SIGNS.items()}
    if counts[Engine.MYSQL] == counts[Engine.POSTGRES]:
        return None
    return max(counts, key=lambda engine: counts[engine])


def _read(
    script: str,
    dialect: Engine,
    found: Placeholders,
    types: Mapping[str, VariableType],
    thorough: bool,
    provided: Set[str],
) -> Reading:
    sampled = placeholders.with_samples(script, found.found, types, dialect)
    analysis = analyze(sampled, dialect, thorough=thorough, provided=provided)
    for fault in found.faults:
        analysis.reject(fault.offset, fault.message)
    analysis.faults.sort(key=lambda fault: fault.offset)
    return Reading(analysis, found, sampled)


def _guess(
    script: str, reading: Reading, types: dict[str, VariableType], thorough: bool, provided: Set[str]
) -> Reading:
    """Tries other kinds of values where the sample is what doesn't parse."""
    for _ in range(min(MAX_GUESSES, 1 + _READ_TO_GUESS // max(len(script), 1))):
        at = {item.start: item for item in reading.placeholders.found}
        blamed = next((at[fault.offset] for fault in reading.analysis.faults if fault.offset in at), None)
        if blamed is None:
            break
        tried = _GUESSES.index(types.get(blamed.name, VariableType.IDENTIFIER))
        if tried + 1 == len(_GUESSES):
            break
        types[blamed.name] = _GUESSES[tried + 1]
        reading = _read(script, reading.analysis.dialect, reading.placeholders, types, thorough, provided)
    return reading
