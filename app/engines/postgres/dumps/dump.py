"""A dump under way: `pg_dump` in the snapshot of a session that keeps it, and what that session reads of it."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from app.engines.base import Tenant
from app.engines.dumping import MOST_OBJECTS, Content, ContentKind, Dump, DumpFormat, DumpPurpose, DumpRefused
from app.engines.pacing import Pace
from app.engines.postgres.connections import PostgresConnections
from app.engines.postgres.dumps import fingerprints, helpers
from app.engines.postgres.dumps.archive import Archive, ArchiveInvalid, Entry
from app.engines.postgres.dumps.processes import RunningTool, ToolProcess, environment
from app.engines.postgres.dumps.refusals import answering, refused, said
from app.engines.postgres.dumps.roles import without
from app.engines.postgres.dumps.snapshot import NEVER_WHOLE, TOO_MANY_SEQUENCES, Snapshot, snapshot
from app.engines.postgres.dumps.tools import DumpTools
from app.engines.postgres.quoting import quote_name

LAYOUT = "pg_custom"
_LOCK_WAIT_MILLISECONDS = 2000
_ATTEMPTS = 4
_LOCKED_OUT = ("canceling statement due to statement timeout", "canceling statement due to lock timeout")
_SESSION = {"idle_in_transaction_session_timeout": "0", "tcp_keepalives_idle": "60"}
_FROZEN_RIGHTS = ("TABLE ", "COLUMN ", "SCHEMA ")
"""The objects on which a frozen tenant has fewer rights than are its own. So its dump has none of the tenant's own
rights on them: they are as the server gives them."""
_SETVAL = re.compile(r"^SELECT pg_catalog\.setval\('(?:[^']|'')*', (-?\d+), (true|false)\);", re.MULTILINE)
_VERSION = "SELECT current_setting('server_version'), current_setting('server_version_num')::int / 10000"


class _DumpedContents(Archive):
    """What the dump says of itself while it is written."""

    def __init__(self, *, frozen: bool) -> None:
        super().__init__()
        self._frozen = frozen
        self.tables: dict[int, str] = {}
        self.sequences: list[Content] = []

    def see(self, entry: Entry) -> None:
        schema = entry.namespace or ""
        if entry.kind == "TABLE DATA":
            self.tables[entry.id] = f"{quote_name(schema)}.{quote_name(entry.tag)}"
        elif entry.kind == "ACL" and self._frozen and entry.tag.startswith(_FROZEN_RIGHTS):
            entry.definition = without(self.database, entry.definition or "")
        elif entry.kind == "SEQUENCE SET":
            found = _SETVAL.search(entry.definition or "")
            if found is None:
                raise ArchiveInvalid(f"the value of the sequence {entry.tag} can't be read")
            if len(self.sequences) >= MOST_OBJECTS:
                raise ArchiveInvalid(TOO_MANY_SEQUENCES)
            self.sequences.append(fingerprints.sequence_content(schema, entry.tag, found[1], found[2] == "true"))


class PostgresDump(Dump):
    def __init__(
        self,
        connections: PostgresConnections,
        form: DumpFormat,
        snapshot: Snapshot,
        tool: ToolProcess,
        first: bytes,
        fingerprinting: asyncio.Task[list[Content]],
        pace: Pace,
    ) -> None:
        self.format = form
        self.consistent_at: datetime = snapshot.moment.at
        self.position = snapshot.moment.position
        self._connections = connections
        self._snapshot = snapshot
        self._fingerprinting = fingerprinting
        self._tool = tool
        self._first = first
        self._pace = pace
        self._dumped = _DumpedContents(frozen=bool(snapshot.own_schema))
        self._ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            piece, self._first = self._first, b""
            while piece := piece or await _read(self._tool, self._pace):
                if passed := self._dumped.feed(piece):
                    yield passed
                piece = b""
            if await self._tool.end() != 0:
                await answering(self._connections, self._tool.errors)
                raise DumpRefused(said(self._tool.errors, "pg_dump was ended, or took too much memory"))
            self._dumped.finish()
            self._complete()
            self._ended.set_result(True)
        except ArchiveInvalid as error:
            raise DumpRefused(str(error)) from error
        finally:
            if not self._ended.done():
                self._ended.set_result(False)

    async def contents(self) -> list[Content]:
        found = await asyncio.shield(self._fingerprinting)
        if not await self._ended:
            raise DumpRefused("the dump didn't end well")
        tables = {one.name: one for one in found if one.kind is ContentKind.TABLE}
        for number, name in self._dumped.tables.items():
            shown = name[: fingerprints.MOST_NAME]
            if shown not in tables:
                raise DumpRefused(f"{shown} is in the dump, but not among the tables that were read")
            if tables[shown].rows != self._dumped.rows.get(number, 0):
                raise DumpRefused(
                    f"{shown} has {tables[shown].rows} rows, and its dump {self._dumped.rows.get(number, 0)}"
                )
        return fingerprints.ordered([*found, *self._dumped.sequences])

    async def let_go(self) -> None:
        self._snapshot.end()

    def _complete(self) -> None:
        """Raises `DumpRefused` unless the dump has the rows of every table."""
        dumped = set(self._dumped.tables.values())
        for table in self._snapshot.tables:
            if table.has_rows and table.qualified not in dumped:
                raise DumpRefused(f"the rows of {table.qualified} are not in the dump")


@asynccontextmanager
async def dumping(
    connections: PostgresConnections, tools: DumpTools, tenant: Tenant, pace: Pace, purpose: DumpPurpose
) -> AsyncIterator[PostgresDump]:
    version, major = await server_version(connections)
    folder, tool = await tools.folder(major)
    form = DumpFormat(flavour="postgres", server_version=version, tool=tool, layout=LAYOUT)
    async with helpers.helping(connections, tenant, purpose.value) as helper:
        for left in reversed(range(_ATTEMPTS)):
            async with (
                snapshot(connections, tenant, helper, alone=False) as held,
                environment(
                    connections.address,
                    database=tenant.name,
                    user=helper.name,
                    password=helper.password,
                    settings=_SESSION,
                ) as environ,
                RunningTool(folder / "pg_dump", _arguments(held), environ, reads=False) as running,
            ):
                # Asked while the tool begins.
                if not await held.is_whole(helper):
                    continue
                async with _fingerprinting(held, pace) as fingerprinting:
                    # It writes when it has its locks.
                    first = await _read(running, pace)
                    if first or not left or not await _was_locked_out(running):
                        yield PostgresDump(connections, form, held, running, first, fingerprinting, pace)
                        return
        raise DumpRefused(NEVER_WHOLE)


async def _read(tool: ToolProcess, pace: Pace) -> bytes:
    async with pace.step() as step:
        piece = await tool.read()
        step.size = len(piece)
    return piece


@asynccontextmanager
async def _fingerprinting(held: Snapshot, pace: Pace) -> AsyncIterator[asyncio.Task[list[Content]]]:
    """A task that reads what the snapshot holds, beside the tool from the start: each of the two takes its time."""
    fingerprinting = asyncio.create_task(held.contents(sequences=[], pace=pace))
    try:
        yield fingerprinting
    finally:
        fingerprinting.cancel()
        await asyncio.gather(fingerprinting, return_exceptions=True)


async def _was_locked_out(running: ToolProcess) -> bool:
    """Whether another session's request for an exclusive lock stood between our session's lock and the tool's. Then
    only the end of our session lets it go on."""
    await running.end()
    return any(sign in running.errors for sign in _LOCKED_OUT)


async def contents(connections: PostgresConnections, tenant: Tenant) -> list[Content]:
    async with helpers.helping(connections, tenant, helpers.DUMP) as helper:
        for _ in range(_ATTEMPTS):
            async with snapshot(connections, tenant, helper, alone=True) as held:
                if await held.is_whole(helper):
                    return await held.contents()
    raise DumpRefused(NEVER_WHOLE)


def _arguments(held: Snapshot) -> list[str]:
    # Never --enable-row-security, which leaves rows out without an error.
    arguments = [
        "--format=custom",
        "--compress=none",
        f"--snapshot={held.moment.snapshot}",
        f"--lock-wait-timeout={_LOCK_WAIT_MILLISECONDS}",
        "--large-objects",
        "--no-tablespaces",
        "--no-security-labels",
        "--no-password",
        "--encoding=UTF8",
    ]
    if held.own_schema:
        arguments.append(f"--exclude-schema={quote_name(held.own_schema)}")
    return arguments


async def server_version(connections: PostgresConnections) -> tuple[str, int]:
    with refused(connections.host):
        async with connections.admin() as connection:
            version, major = await connection.fetchrow(_VERSION)
    return version, major
