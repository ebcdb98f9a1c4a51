"""A script made ready to be applied: its statements with the variables' values in them."""

from collections import Counter
from collections.abc import Callable, Mapping, Set
from typing import Any

import msgspec

from app.blueprints import placeholders
from app.blueprints.hiding import MASK, Secrets
from app.blueprints.placeholders import Placeholder
from app.blueprints.reading import Reading, read
from app.blueprints.shape import Span, same_shape
from app.blueprints.variables import Definition, Value, VariableError, VariableType, check_definitions, check_values
from app.contracts.base import Engine
from app.dialects.analysis import MAX_CHARACTERS, ScriptStatement
from app.dialects.positions import Lines
from app.dialects.registry import DIALECTS

MAX_LOG_TEXT = 500
HIDDEN = f"'{MASK}'"


class ScriptError(Exception):
    """The script can't be applied to this engine. `errors` are for people, each with its line and column."""

    def __init__(self, engine: Engine, errors: list[str]) -> None:
        super().__init__(f"This is no valid SQL for {DIALECTS[engine].label}: {errors[0]}")
        self.errors = errors


class PreparedStatement(msgspec.Struct, frozen=True, kw_only=True):
    """One statement to run, or to leave out; `index` and `line` count from 1."""

    index: int
    line: int
    kind: str
    object: str | None
    text: str
    """For the engine alone: it may hold secret values. Empty when the statement is left out."""
    log_text: str
    """For people: shortened, and with `***` for secret values."""
    left_out: str | None
    """Why this statement is not to be run; None for those that are."""
    sets_sequence: bool
    """Whether it sets a sequence in a way that a rollback doesn't undo."""


def prepare(
    sql: str,
    engine: Engine,
    definitions: Mapping[str, Any] | None,
    values: Mapping[str, Any] | None,
    provided: Set[str] = frozenset(),
) -> list[PreparedStatement]:
    """The statements of a script in order, for a session that reads literals as the engine's `Dialect` does.

    Raises `VariableError`, `ScriptError` and `DefinitionError`.
    """
    declared = check_definitions(definitions)
    chosen = check_values(declared, values)
    # Each statement is read again with its values.
    return DIALECTS[engine].batch(lambda: _prepare(sql, engine, declared, chosen, provided))


def _prepare(
    sql: str, engine: Engine, declared: Mapping[str, Definition], chosen: Mapping[str, Value], provided: Set[str]
) -> list[PreparedStatement]:
    reading = read(sql, engine, declared, provided=provided)
    lines = Lines(sql)
    if not reading.analysis.valid or not reading.analysis.statements:
        raise ScriptError(engine, _errors(reading, lines))
    filler = _Filler(sql, reading, declared, chosen, provided)
    filler.check_length()
    return [
        PreparedStatement(
            index=index,
            line=lines.line(found.start),
            kind=found.kind,
            object=found.object and filler.name(found.object),
            text="" if found.left_out else filler.text(found),
            log_text=filler.log_text(found),
            left_out=found.left_out,
            sets_sequence=found.sets_sequence,
        )
        for index, found in enumerate(reading.analysis.statements, start=1)
    ]


def secrets_of(definitions: Mapping[str, Any] | None, values: Mapping[str, Any] | None) -> Secrets:
    """The secret values that an engine's message may quote. One that is given as null is the default."""
    given = {name: value for name, value in (values or {}).items() if value is not None}
    found = {
        name: given.get(name, definition.default)
        for name, definition in check_definitions(definitions).items()
        if definition.secret
    }
    return Secrets(str(value) for value in found.values() if value is not None and not isinstance(value, bool))


def _errors(reading: Reading, lines: Lines) -> list[str]:
    names = {item.name for item in reading.placeholders.found}
    errors = [
        f"{lines.place(fault.offset)}: {placeholders.as_written(fault.message, names)}"
        for fault in reading.analysis.faults
    ]
    return errors or ["line 1, column 1: the script holds no statement"]


class _Filler:
    """Puts values where placeholders stand."""

    def __init__(
        self,
        script: str,
        reading: Reading,
        definitions: Mapping[str, Definition],
        values: Mapping[str, Value],
        provided: Set[str],
    ) -> None:
        self._provided = provided
        self._script = script
        self._reading = reading
        self._definitions = definitions
        self._dialect = DIALECTS[reading.analysis.engine]
        self._quoted = {name: self._quote(value, definitions[name].type) for name, value in values.items()}
        shown = {name: HIDDEN for name, definition in definitions.items() if definition.secret}
        self._shown = {name: _beginning(text) for name, text in (self._quoted | shown).items()}
        self._used = {item.name for item in reading.placeholders.found}
        self._named = {name: str(values[name]) for name in self._used if not definitions[name].secret}

    def check_length(self) -> None:
        """Checks the script's length with its values, before any is put in: a value of a megabyte may stand in a
        hundred thousand places. Raises `VariableError` naming the variable that takes most."""
        lengths = Counter[str]()
        for item in self._reading.placeholders.found:
            lengths[item.name] += len(self._quoted[item.name])
        if len(self._script) + lengths.total() > MAX_CHARACTERS:
            name = lengths.most_common(1)[0][0]
            raise VariableError(name, f"makes the script longer than {MAX_CHARACTERS} characters")

    def text(self, found: ScriptStatement) -> str:
        """The statement with its values. Raises `VariableError` if a value would make it another statement."""
        used = self._reading.placeholders.between(found.start, found.end)
        text, spans = self._put(found, used, lambda item: self._quoted[item.name])
        if not used:
            return text
        sampled = self._reading.sampled
        sample, sample_spans = self._put(found, used, lambda item: sampled[item.start : item.end])
        if not same_shape(sample, sample_spans, text, spans, self._dialect):
            raise VariableError(used[0].name, "has a value that can't stand where the blueprint uses it")
        analysis = self._dialect.analyze(text, single=True, extensions=self._provided)
        if analysis.faults or [statement.kind for statement in analysis.statements] != [found.kind]:
            reason = analysis.faults[0].message if analysis.faults else "it would be another kind of statement"
            raise VariableError(used[0].name, f"has a value that can't stand where the blueprint uses it: {reason}")
        return text

    def log_text(self, found: ScriptStatement) -> str:
        used = self._reading.placeholders.between(found.start, found.end)
        text = _beginning(self._put(found, used, lambda item: self._shown[item.name])[0])
        return text if len(text) <= MAX_LOG_TEXT else text[: MAX_LOG_TEXT - 1] + "…"

    def name(self, name: str) -> str:
        """An object's name with its values, as people read it."""
        return placeholders.as_written(name, self._used, self._named)

    def _quote(self, value: Value, kind: VariableType) -> str:
        if kind is VariableType.IDENTIFIER:
            return self._dialect.quote_name(str(value))
        return self._dialect.quote(value)

    def _put(
        self, found: ScriptStatement, used: list[Placeholder], value_of: Callable[[Placeholder], str]
    ) -> tuple[str, list[Span]]:
        """The statement with values in it, and where they are."""
        changes = [(cut.start, cut.end, "", False) for cut in found.cuts]
        changes += [(item.start, item.end, value_of(item), True) for item in used]
        text = ""
        spans: list[Span] = []
        at = found.start
        for start, end, value, counts in sorted(changes):
            text += self._script[at:start]
            if counts:
                spans.append((len(text), len(text) + len(value)))
            text += value
            at = end
        return text + self._script[at : found.end], spans


def _beginning(text: str) -> str:
    """The text's beginning, in one line, and no more of it than shows that a log text would be longer: a megabyte of
    words of one letter would be made a list of half a million."""
    return " ".join(text.split(None, MAX_LOG_TEXT))[: MAX_LOG_TEXT + 1]
