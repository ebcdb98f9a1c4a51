"""Dumps of tenant databases, and what a dump, and a database, holds.

A dump is made by the engine's own tool, as an account that reads everything of one tenant and nothing else. What it
holds is described table by table at the same moment, so that a restored copy can be compared with it.
"""

import contextlib
import resource
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable
from datetime import datetime
from enum import StrEnum

import msgspec

from app.core.priority import put_process_last
from app.engines.errors import EngineError

CHUNK_BYTES = 1_048_576
"""The maximum size of a dump's chunks."""
MOST_OBJECTS = 100_000
"""The most tables that a dumped database may have, including views where they are listed together: their names are in
memory during the dump, and in the manifest."""
TOOL_MEMORY_BYTES = 2**30
"""The maximum memory of a dump tool: it holds one row at a time, and lists of what a tenant has made, and tenants may
write rows of a gigabyte."""


class DumpRefused(EngineError):
    """This database can't be dumped exactly: the message says which of its objects, or what the server said. Another
    attempt may succeed when the tenant has changed something."""


class DatabaseDropped(DumpRefused):
    """The tenant has dropped the database itself: the tenant's account is there, but nothing that a dump could hold."""


class LoadRefused(EngineError):
    """The dump can't be loaded here: the message says what failed. Another attempt ends the same way."""


class ContentKind(StrEnum):
    TABLE = "table"
    SEQUENCE = "sequence"
    LARGE_OBJECTS = "large_objects"
    OTHER = "other"
    DEFINITIONS = "definitions"
    """Definitions of one kind of object without rows. They are read beside the moment of the dump: a dump during which
    they changed lacks them, as older dumps do, and they are compared only where the dump has them."""


class Content(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """What one object of a database holds at one moment.

    `name` is qualified and bounded; a tenant chose it. `fingerprint` depends on the rows and not on their order, on the
    host, or on what the tenant has defined; two servers of one engine compute the same.
    """

    name: str
    kind: ContentKind = ContentKind.TABLE
    rows: int = 0
    fingerprint: str


def count_tables(contents: Iterable[Content]) -> int:
    return sum(1 for one in contents if one.kind is ContentKind.TABLE)


def count_rows(contents: Iterable[Content]) -> int:
    """The number of rows in all tables together."""
    return sum(one.rows for one in contents if one.kind is ContentKind.TABLE)


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a copy that the server was to make by itself."""

    done: bool
    """Whether the copy was made. If not, nothing of it is there."""
    held_seconds: float = 0.0
    """How long nobody was let in to the source."""


class DumpPurpose(StrEnum):
    """What a dump is for. Dumps of one database for the same purpose share an account, and a later dump takes it from
    an earlier one, or is refused; dumps for different purposes don't know each other."""

    BACKUP = "dump"
    CLONE = "clone"


class DumpFormat(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be known of a dump to load it."""

    flavour: str
    """`postgres`, `mysql` or `mariadb`."""
    server_version: str
    tool: str
    """The tool and its version, such as `pg_dump 18.6`."""
    layout: str
    """The layout of the stream, such as `pg_custom` or `sql`."""


class Dump(ABC):
    """A dump under way. `chunks` is read once; `contents` may be called beside it, or after it."""

    format: DumpFormat
    consistent_at: datetime
    """The moment that it shows, by the host's clock, in UTC."""
    position: str | None
    """The same moment in the server's log, an LSN or a GTID set; None where it isn't known."""

    @abstractmethod
    def chunks(self) -> AsyncIterator[bytes]:
        """The tool's output, bounded in memory. Ends only after the tool has ended well. Raises `DumpRefused`;
        `HostUnavailable`."""

    @abstractmethod
    async def contents(self) -> list[Content]:
        """Everything that the dump holds, ordered by name, at the dump's own moment. Complete only after `chunks` has
        ended. Raises `DumpRefused`; `HostUnavailable`."""

    async def let_go(self) -> None:  # noqa: B027 - not every engine holds something
        """Ends what others on the host may wait for, once `chunks` and `contents` are complete. The dump's account is
        removed when the block ends."""


def restrain(pid: int) -> None:
    """Bounds the memory of a dump tool that was just started, and lets everything else go first."""
    put_process_last(pid)
    if sys.platform == "linux":
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (TOOL_MEMORY_BYTES, TOOL_MEMORY_BYTES))
