"""What every dialect does: read an engine's SQL before a server sees it."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Set
from typing import ClassVar, TypeVar

from app.contracts.base import Engine
from app.dialects.analysis import Analysis
from app.dialects.errors import SqlError
from app.dialects.tokens import Token
from app.dialects.verdict import AllowedSQL, Refused, SqlClass, Unreadable, check_text

Result = TypeVar("Result")


class Dialect(ABC):
    """One engine's SQL, for a session with that engine's usual reading of literals: PostgreSQL's
    `standard_conforming_strings` on, MySQL's `sql_mode` without ANSI_QUOTES and NO_BACKSLASH_ESCAPES. Holds no state.

    Positions count characters from 0. Reading a megabyte takes seconds of computing: call it in a thread.
    """

    engine: ClassVar[Engine]
    label: ClassVar[str]
    """The engine's name, for people."""
    name_mark: ClassVar[str]
    """What stands before and after a quoted name; inside one it is doubled."""
    signs: ClassVar[re.Pattern[str]]
    """What only scripts for this engine are likely to hold. Each match is one sign."""
    schema_reads: ClassVar[str]
    """The statements by which a question about the schema itself is answered, for a language model's prompt."""
    error_phrases: ClassVar[Mapping[str, str]]
    """By the engine's codes of errors about names and syntax: what was wrong, in words for a language model."""
    not_granted_codes: ClassVar[Set[str]]
    """The engine's codes of errors for want of a right on what a statement names."""

    @abstractmethod
    def tokens(self, text: str) -> Iterator[Token]:
        """All tokens, without white space. Raises `SqlError` at what is never closed, or is ambiguous to servers."""

    @abstractmethod
    def split(self, script: str) -> list[tuple[int, int]]:
        """Where each statement begins and ends, without what separates them. Raises `SqlError`."""

    @abstractmethod
    def analyze(
        self, script: str, *, single: bool = False, thorough: bool = True, extensions: Set[str] = frozenset()
    ) -> Analysis:
        """The statements of a script without placeholders, and what is wrong with them.

        `single`: it was cut out of a script as one statement. Unless `thorough`, the first fault ends it.
        `extensions` are those that engine hosts offer.
        """

    def without_octets(self, script: str) -> str:
        """The same script without octets that are no text, each of which is one of PEP 383's surrogates in it. Raises
        `SqlError` where it can't be written so."""
        raise SqlError(0, f"{self.label} reads scripts in UTF-8 alone")

    def judge(self, sql: str, database: str) -> AllowedSQL:
        """Judges, by its text alone, whether a question's SQL may be executed. `database` is the name of the tenant's
        own database on its host. Raises `Refused`; `Unreadable` for what can't be parsed."""
        check_text(sql)
        classified = self._classified(sql, database)
        if not classified:
            raise Unreadable("There is no statement.")
        classes = {sql_class for _, sql_class in classified}
        if len(classified) > 1 and classes != {SqlClass.DDL_BATCH}:
            raise Refused("Only statements that change the schema may come together; this has several others.")
        return AllowedSQL(sql_class=classified[0][1], statements=tuple(text for text, _ in classified))

    @abstractmethod
    def _classified(self, sql: str, database: str) -> list[tuple[str, SqlClass]]:
        """Each statement as it would be executed, without comments, and its class. Raises `Refused`."""

    @abstractmethod
    def quote_text(self, value: str) -> str:
        """A literal that is a single token, whatever is in it. NUL and lone surrogates can't be in it."""

    def quote_name(self, name: str) -> str:
        return self.name_mark + name.replace(self.name_mark, self.name_mark * 2) + self.name_mark

    def quote(self, value: str | int | float | bool | None) -> str:
        """A value as SQL. A negative number brings a blank, so that it can't make a comment of a minus before it."""
        if value is None:
            return "NULL"
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, str):
            return self.quote_text(value)
        text = repr(value)
        return f" {text}" if text.startswith("-") else text

    def batch(self, work: Callable[[], Result]) -> Result:
        """Runs `work`, in which this dialect is called many times, so that what each call would prepare for itself is
        prepared once."""
        return work()
