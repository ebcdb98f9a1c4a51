"""The result of reading a script as one engine's SQL. Offsets count the script's characters, from 0."""

from dataclasses import dataclass, field

from app.contracts.base import Engine

MAX_FAULTS = 20
"""More are counted, not listed: nobody reads them, and a hostile script could make them by the million."""

MAX_CHARACTERS = 16 * 1024 * 1024
"""The most characters of a script with the values of its variables. Without them it may have a sixteenth of that."""

MAX_STATEMENTS = 10_000
"""Each takes a fraction of a millisecond to judge, and a row in the log of each application."""

Finding = tuple[int, str]
"""An offset, and what is wrong there."""
Remark = tuple[str, str]
"""The name of a rule, and its message about a statement."""


@dataclass(frozen=True, slots=True)
class ScriptFault:
    """Why a script can't be a blueprint for this engine."""

    offset: int
    message: str
    forbidden: bool = False
    """Whether the engine would read what stands here, but no blueprint may hold it, whichever engine it is valid
    for."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that may surprise whoever applies the script; `rule` is its name."""

    rule: str
    offset: int
    message: str


@dataclass(frozen=True, slots=True)
class Cut:
    """Part of a statement that is left out when it is applied."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class StatementSummary:
    """What kind a statement is of, and what it is about: see `ScriptStatement`."""

    kind: str
    object: str | None = None
    object_type: str | None = None
    makes: bool = False


@dataclass(frozen=True, slots=True)
class ScriptStatement:
    """One statement of a script, which runs from `start` to `end` without `cuts`."""

    start: int
    end: int
    kind: str
    """The leading words of the statement, such as `CREATE TABLE`."""
    object: str | None = None
    """The name that it is about, as it is written without quotes, with its schema if the script says it."""
    object_type: str | None = None
    makes: bool = False
    """Whether `object` exists because of this statement."""
    cuts: tuple[Cut, ...] = ()
    left_out: str | None = None
    """Why applying doesn't run it; None for those that run."""
    sets_sequence: bool = False
    """Whether it sets a sequence in a way that a rollback doesn't undo."""


@dataclass(slots=True)
class Analysis:
    """A script, read as the SQL of one engine."""

    engine: Engine
    statements: list[ScriptStatement] = field(default_factory=list)
    faults: list[ScriptFault] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    extensions: list[str] = field(default_factory=list)

    @property
    def valid(self) -> bool:
        return not self.faults

    @property
    def forbidden(self) -> bool:
        """Whether the script is this engine's SQL, and holds what no blueprint may hold."""
        return bool(self.faults) and all(fault.forbidden for fault in self.faults)

    def reject(self, offset: int, message: str) -> None:
        """Adds a fault for what isn't this engine's SQL, or can't be read."""
        self.faults.append(ScriptFault(offset, message))

    def forbid(self, offset: int, message: str) -> None:
        self.faults.append(ScriptFault(offset, message, forbidden=True))

    def notice(self, rule: str, offset: int, message: str) -> None:
        self.notices.append(Notice(rule, offset, message))
