"""One dump: the tool as a child process, and the relay between it and the server."""

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from app.core import subprocesses
from app.core.subprocesses import PIPE, Subprocess
from app.core.tracing.spans import span
from app.engines.base import Tenant
from app.engines.dumping import CHUNK_BYTES, Content, Dump, DumpFormat, DumpRefused, restrain
from app.engines.errors import EngineError, HostUnavailable, shortened
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.dumps.relay import SESSION_ENDED, Relay, ToolEnded
from app.engines.mysql.dumps.tables import named
from app.engines.mysql.dumps.tools import DumpTool
from app.engines.mysql.errors import translated
from app.engines.mysql.flavours import Flavour
from app.engines.pacing import Pace

LAYOUT = "sql"
_MAX_STDERR = 64 * 1024
FLAGS = (
    "--single-transaction",
    "--quick",
    "--no-tablespaces",
    "--routines",
    "--triggers",
    "--hex-blob",
    "--tz-utc",
    "--default-character-set=utf8mb4",
    "--max-allowed-packet=1G",
    "--skip-add-drop-table",
    "--skip-add-locks",
    "--skip-disable-keys",
    "--skip-comments",
)
_MODE = b"SQL_MODE='NO_AUTO_VALUE_ON_ZERO'"
# Dates that are none may be stored, and would be loaded as zero.
_LENIENT_MODE = b"SQL_MODE='NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'"
_PREAMBLE_BYTES = 4096
_BLAMES_SERVER = re.compile(r"\A\S+: (?:Got )?error:? (?:1053|1927): |\((?:1053|1927)\)\Z", re.IGNORECASE)
"""A tool's message about a server that shuts down, or that was told to end the session."""
_DEFAULTS = (
    "SELECT default_character_set_name, default_collation_name FROM information_schema.schemata WHERE schema_name = %s"
)
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class MySQLDump(Dump):
    def __init__(self, host: str, form: DumpFormat, relay: Relay, process: Subprocess, head: bytes, pace: Pace) -> None:
        """`host` is its name in messages."""
        self.format = form
        self.position = None
        self._host = host
        self._relay = relay
        self._process = process
        self._head = head
        self._pace = pace
        self._complaints = asyncio.create_task(_bounded_text(process.stderr))
        self._relaying: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    async def begin(self, connected: "asyncio.Future[Streams]") -> None:
        """Returns when the snapshot is taken."""
        exited = asyncio.create_task(self._process.wait())
        begun = asyncio.create_task(self._relay.begun.wait())
        try:
            waited: set[asyncio.Future[Any]] = {exited, connected}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not connected.done():
                raise self._refusal(exited.result(), await self._complaints)
            self._relaying = asyncio.create_task(self._relay.serve(*connected.result()))
            waited = {self._relaying, begun}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not begun.done():
                await self._check_end()
        finally:
            for task in (exited, begun):
                task.cancel()
            await asyncio.gather(exited, begun, return_exceptions=True)
        self.consistent_at = self._relay.consistent_at

    async def chunks(self) -> AsyncIterator[bytes]:
        assert self._process.stdout is not None
        yield self._head
        preamble = bytearray()
        while len(preamble) < _PREAMBLE_BYTES and (data := await self._process.stdout.read(_PREAMBLE_BYTES)):
            preamble += data
        yield bytes(preamble).replace(_MODE, _LENIENT_MODE, 1)
        while data := await self._read(self._process.stdout):
            yield data
        await self._check_end()
        self._ended.set()

    async def _read(self, output: asyncio.StreamReader) -> bytes:
        async with self._pace.step() as step:
            data = await output.read(CHUNK_BYTES)
            step.size = len(data)
        return data

    async def _check_end(self) -> None:
        """Raises what has gone wrong, if the tool hasn't ended well."""
        assert self._relaying is not None
        with translated(self._host):
            try:
                await self._relaying
            except ToolEnded as error:
                raise self._refusal(await self._process.wait(), await self._complaints) from error
            if code := await self._process.wait():
                raise self._refusal(code, await self._complaints)
            await self._relay.check_complete()

    def _refusal(self, code: int, complaints: str) -> EngineError:
        lines = [line for line in complaints.splitlines() if line.strip() and "[Warning]" not in line]
        if lines and blames_server(lines[-1]):
            return HostUnavailable(SESSION_ENDED)
        where = "" if self._relay.reading is None else f"the table {named(self._relay.reading)}: "
        said = shortened(lines[-1]) if lines else f"it ended with {code}"
        return DumpRefused(f"{where}{self.format.tool}: {said}")

    async def contents(self) -> list[Content]:
        await self._ended.wait()
        return self._relay.contents

    async def end(self) -> None:
        """Ends whatever is under way; repeatable."""
        if self._process.returncode is None:
            self._process.kill()
        # Its end is only reported when its pipes are empty.
        assert self._process.stdout is not None
        while await self._process.stdout.read(CHUNK_BYTES):
            pass
        await self._process.wait()
        tasks = [task for task in (self._relaying, self._complaints) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._process.close()


def blames_server(complaint: str) -> bool:
    """Whether a tool says that the server has ended its session, which is no fault of what is dumped. That it has lost
    the connection is no sign of it: it says so when it lacks memory, too."""
    return _BLAMES_SERVER.search(complaint) is not None


def header(database: str, defaults: tuple[str, str], comment: str) -> bytes:
    """The header of the dump: the name of the database, which is ours, and its defaults and its comment, which the
    tools leave out."""
    charset, collation = defaults
    altered = f"ALTER DATABASE CHARACTER SET {charset} COLLATE {collation}"
    if comment:
        # In a mode in which a backslash in a string is an escape. The dump sets its own one next.
        quoted = comment.replace("\\", "\\\\").replace("'", "''")
        altered = f"SET SESSION sql_mode = '';\n{altered} COMMENT '{quoted}'"
    return f"-- headwater {database}\n{altered};\n".encode()


async def database_defaults(session: MySQLConnection, database: str) -> tuple[str, str]:
    [(charset, collation)] = await session.run(_DEFAULTS, (database,))
    return str(charset), str(collation)


async def database_comment(session: MySQLConnection, database: str) -> str:
    query = session.flavour.database_comment
    if query is None:
        return ""
    [(comment,)] = await session.run(query, (database,))
    return str(comment or "")


@asynccontextmanager
async def run_tool(
    tool: DumpTool, session: MySQLConnection, administrator: MySQLConnection, tenant: Tenant, pace: Pace
) -> AsyncIterator[MySQLDump]:
    """Runs the dump tool, and yields when the snapshot is taken."""
    defaults = await database_defaults(session, tenant.name)
    comment = await database_comment(session, tenant.name)
    await administrator.run(f"USE `{tenant.name}`")
    await administrator.run("SET SESSION sql_mode = '', sql_quote_show_create = 1")
    relay = Relay(session, administrator, tenant)
    async with AsyncExitStack() as stack:
        # The tool connects once, so the folder goes with that: a process that is killed later leaves none behind.
        with tempfile.TemporaryDirectory(prefix="headwater-dump-") as folder:
            socket = Path(folder) / "socket"
            connected: asyncio.Future[Streams] = asyncio.get_running_loop().create_future()
            server = await asyncio.start_unix_server(_only_first(connected), path=socket)
            stack.callback(server.close)
            stack.callback(_disconnect, connected)
            process = await _start(tool, session.flavour, socket, tenant.name)
            form = DumpFormat(
                flavour=session.flavour.name, server_version=session.get_server_info(), tool=tool.name, layout=LAYOUT
            )
            host = f"{session.host}:{session.port}"
            dump = MySQLDump(host, form, relay, process, header(tenant.name, defaults, comment), pace)
            stack.push_async_callback(dump.end)
            stack.enter_context(span(f"run {Path(tool.path).name}"))
            await dump.begin(connected)
        yield dump


def _disconnect(connected: "asyncio.Future[Streams]") -> None:
    if connected.done() and not connected.cancelled():
        connected.result()[1].close()


async def _start(tool: DumpTool, flavour: Flavour, socket: Path, database: str) -> Subprocess:
    process = await subprocesses.start(
        tool.path,
        "--no-defaults",
        f"--socket={socket}",
        "--protocol=SOCKET",
        "--user=headwater",
        *FLAGS,
        *flavour.dump_flags,
        database,
        env={"HOME": "/nonexistent", "LC_ALL": "C"},
        stderr=PIPE,
        cwd="/",
        new_session=True,
        limit=CHUNK_BYTES,
    )
    restrain(process.pid)
    return process


def _only_first(connected: "asyncio.Future[Streams]") -> Callable[..., None]:
    """Accepts only the first connection: the socket is in a folder of ours, and the tool connects once."""

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if connected.done():
            writer.close()
        else:
            connected.set_result((reader, writer))

    return accept


async def _bounded_text(reader: asyncio.StreamReader | None) -> str:
    assert reader is not None
    kept = bytearray()
    while data := await reader.read(4096):
        kept += data
        del kept[:-_MAX_STDERR]
    return kept.decode("utf-8", "replace")
