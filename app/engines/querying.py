"""Sessions for questions, opened for one question and closed after it, with no rights beyond the tenant's own."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import msgspec

from app.engines.errors import EngineError, shortened

READER_PURPOSE = "ro"
"""The SELECT-only account of a tenant is `<name>_ro`."""
READER_SESSIONS = 4
"""The session limit of the SELECT-only account, in addition to the tenant's own."""


class QueryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one statement, or of several that change the schema together. The server enforces `seconds` for each
    statement, and we for all together; `rows` and `octets` (bytes) truncate the result."""

    seconds: float
    lock_seconds: float = 5.0
    rows: int
    octets: int = 8 * 1024 * 1024

    @property
    def max_response_bytes(self) -> int:
        """The size in bytes at which the connection is cut. It is above `octets`: of rows that arrive together, the
        last may be too many."""
        return 4 * self.octets


class ResultColumn(msgspec.Struct, frozen=True):
    """`type` is the engine's name of the type."""

    name: str
    type: str


class RowsRead(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a read. Values are ready for JSON, without loss. Column names are distinct."""

    columns: list[ResultColumn]
    rows: list[dict[str, Any]]
    truncated: bool


class ColumnInfo(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    type: str
    required: bool
    comment: str | None = None


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """A foreign key. `table` is the key of another `TableInfo`."""

    columns: tuple[str, ...]
    table: tuple[str, str]
    target_columns: tuple[str, ...]


class TableInfo(msgspec.Struct, kw_only=True):
    """A table or view. `schema` is empty on an engine without schemas inside a database."""

    schema: str
    name: str
    is_view: bool
    comment: str | None = None
    columns: list[ColumnInfo]
    primary_key: tuple[str, ...] = ()
    references: list[Reference] = msgspec.field(default_factory=list)

    @property
    def key(self) -> tuple[str, str]:
        return self.schema, self.name


MAX_TABLES = 2000
MAX_COLUMNS = 10_000
MAX_KEYS = 5000
MAX_COMMENT = 200
MAX_TYPE = 400
"""Limits of a description: tables, columns and keys in all, characters of one comment or type. The server itself
truncates longer ones."""


class SchemaDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The tables and views of a tenant's own schemas, up to `MAX_TABLES` and the other limits. `version` stays the
    same while none of it changes."""

    tables: list[TableInfo]
    version: str

    @property
    def characters(self) -> int:
        """The approximate length of its texts."""
        return sum(map(_characters, self.tables))


def _characters(table: TableInfo) -> int:
    columns = sum(len(c.name) + len(c.type) + len(c.comment or "") for c in table.columns)
    keys = sum(map(len, table.primary_key)) + sum(
        len(name) for key in table.references for name in (*key.columns, *key.target_columns)
    )
    return len(table.name) + len(table.comment or "") + columns + keys


class QueryFailed(EngineError):
    """The engine refused or aborted a statement. The message is the engine's own, shortened, and may quote data.

    `executed` counts the earlier statements whose effects are permanent. `certain` is false when the connection was
    lost or we stopped waiting, so that nobody knows whether the statement took effect.
    """

    def __init__(self, message: str, *, code: str | None = None, executed: int = 0, certain: bool = True) -> None:
        super().__init__(shortened(message), code=code)
        self.executed = executed
        self.certain = certain


class ReadSession(ABC):
    """A read-only session of the SELECT-only account. Untrusted after its statement, and so used once."""

    @abstractmethod
    async def describe(self, known: SchemaDescription | None = None) -> SchemaDescription:
        """Describes the schema: names, types and comments, no rows. Returns `known` if it is still current."""

    @abstractmethod
    async def read(self, sql: str) -> RowsRead:
        """Raises `QueryFailed`. When it is cancelled, the statement is cancelled on the server."""


class WriteSession(ABC):
    """One session of the tenant's own account."""

    @abstractmethod
    async def write(self, sql: str) -> int:
        """The number of rows that the statement changed, after its commit. Raises `QueryFailed`. When it is
        cancelled, the statement is cancelled on the server."""

    @abstractmethod
    async def change(self, statements: Sequence[str]) -> int:
        """Runs statements that change the schema, all or none as far as the engine can. All statements together have
        the limits' `seconds`, and a few more for the server to end the last one. Raises `QueryFailed`."""


def distinct(names: Sequence[str]) -> list[str]:
    """The names, with a number added to repeated ones: `id`, `id_2`."""
    taken = set(names)
    seen: set[str] = set()
    result = []
    for name in names:
        number, chosen = 2, name
        while chosen in seen or (chosen != name and chosen in taken):
            chosen = f"{name}_{number}"
            number += 1
        seen.add(chosen)
        result.append(chosen)
    return result
