"""Between a dump tool and the server: the tool's connection ends here, and ours goes on to the server.

So the tool needs no password and no TLS of its own; what it asks for is bounded; its rows are identified by their
fingerprints, read in its own snapshot; and tables are selected exactly.
"""

import asyncio
import contextlib
import re
from datetime import UTC, datetime

import msgspec
import pymysql

from app.engines.base import Tenant
from app.engines.dumping import Content, ContentKind, DumpRefused
from app.engines.errors import EngineError, HostUnavailable, shortened
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.dumps import wire
from app.engines.mysql.dumps.columns import held_selection, inexact_documents, seed, select_rows, selection
from app.engines.mysql.dumps.definitions import definitions, unchanged
from app.engines.mysql.dumps.long_rows import LONG_BYTES
from app.engines.mysql.dumps.rows import RowsDigest
from app.engines.mysql.dumps.tables import BASE, TableList, check_names_kept, named, table_ids
from app.engines.mysql.errors import LOCK_WAIT_TIMEOUT, SESSION_LOST
from app.engines.mysql.quoting import quote_name

READ_BYTES = 262_144
_NAME = r"`((?:[^`]|``)+)`"
_COLUMNS = rf"(\*|{_NAME}(?:, {_NAME})*)"
_ROWS = re.compile(rf"SELECT /\*!40001 SQL_NO_CACHE \*/ {_COLUMNS} FROM {_NAME}\Z", re.DOTALL)  # noqa: S608 - a pattern
_COLUMN = re.compile(_NAME, re.DOTALL)
_SEQUENCE = re.compile(rf"SELECT next_not_cached_value FROM {_NAME}\Z", re.DOTALL)  # noqa: S608 - a pattern
_LISTED = re.compile(r"SHOW (?:FULL )?TABLES\Z", re.IGNORECASE)
_SHOWN = re.compile(rf"show create table {_NAME}\Z", re.DOTALL | re.IGNORECASE)
_BODIES = re.compile(r"SHOW CREATE (?:PROCEDURE|FUNCTION|PACKAGE|PACKAGE BODY|LIBRARY) `")
"""Requests for the text of routines, which is shown to the account that made them and to the administrator, but to no
other account."""
_DEFINITION = re.compile(r"SHOW CREATE (?P<what>.+)", re.DOTALL | re.IGNORECASE)
DEFINITION_BYTES = LONG_BYTES - 65_536
"""The maximum of a definition as the server shows it, so that a load takes it with what the tools write around it."""
_BEGINS = re.compile(r"START TRANSACTION\b")
_STOPS_OTHERS = re.compile(r"\s*(?:FLUSH|LOCK)\b", re.IGNORECASE)
_ANSWER_EOFS = 2
SESSION_ENDED = "the server ended the session of the dump"


class Relay:
    """One tool's connection. `upstream` is the session of the dump, `administrator` shows routines."""

    def __init__(self, upstream: MySQLConnection, administrator: MySQLConnection, tenant: Tenant) -> None:
        self._upstream = upstream
        self._administrator = administrator
        self._database = tenant.name
        self._tables = TableList({})
        self._ids: dict[int, str] = {}
        self._definitions: list[Content] = []
        self._described: set[str] = set()
        self._columns: dict[str, dict[str, str]] = {}
        self._watched: Watched | None = None
        self._defining: _ShownDefinition | None = None
        self._beginning = False
        self._passing: asyncio.Task[None] | None = None
        self.contents: list[Content] = []
        self.reading: str | None = None
        """The table whose rows the tool has asked for last, with nothing but a good-bye since."""
        self.consistent_at = datetime.now(UTC)
        self.begun = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Returns when the tool has said good-bye. Whatever happens, its connection is closed then."""
        try:
            await wire.greet(
                reader,
                writer,
                server_version=self._upstream.get_server_info(),
                plugin=self._upstream.flavour.login_plugin,
            )
            while True:
                command = await self._next_command(reader)
                await self._finish_watching()
                if command[0] == wire.COM_QUIT:
                    return
                self.reading = None
                await self._handle(command, writer)
                if self._passing is None:
                    self._passing = asyncio.create_task(self._pass_answers(writer))
        finally:
            with contextlib.suppress(Exception):
                await self._stop_passing()
            writer.close()

    async def _next_command(self, reader: asyncio.StreamReader) -> bytes:
        """Waits for the tool's next command. The answer to the last one is passed on meanwhile: when the next command
        comes, nothing is on its way any more."""
        try:
            return (await wire.read_packet(reader))[1]
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            if self._passing is not None and self._passing.done():
                self._passing.result()
            raise ToolEnded from error

    async def _pass_answers(self, writer: asyncio.StreamWriter) -> None:
        """Passes the server's answers to the tool, until we ask the server ourselves. A failure ends the tool's
        connection, so that nobody waits for more."""
        reader: asyncio.StreamReader = self._upstream._reader
        try:
            while data := await reader.read(READ_BYTES):
                if self._watched is not None:
                    self._watched.digest.feed(data)
                if self._defining is not None:
                    self._defining.count(len(data))
                writer.write(data)
                await _drained(writer)
            raise HostUnavailable(SESSION_ENDED)
        except Exception:
            writer.close()
            raise

    async def _stop_passing(self) -> None:
        """Stops the passing of answers, before we ask the server something ourselves. Raises what has ended it."""
        if self._passing is not None:
            passing, self._passing = self._passing, None
            if passing.done():
                passing.result()
            passing.cancel()
            await asyncio.gather(passing, return_exceptions=True)

    async def _handle(self, command: bytes, writer: asyncio.StreamWriter) -> None:
        if command[0] in (wire.COM_INIT_DB, wire.COM_PING):
            self._send(command)
            return
        if command[0] != wire.COM_QUERY:
            raise EngineError(f"the dump tool sent a command that isn't known here: {command[0]}")
        statement = command[1:].decode("utf-8", "surrogateescape")
        if _STOPS_OTHERS.match(statement):
            raise EngineError(f"the dump tool asked for what would stop others: {shortened(statement)}")
        found = _DEFINITION.match(statement)
        self._defining = None if found is None else _ShownDefinition(found["what"])
        if _BODIES.match(statement):
            assert self._defining is not None
            await self._show_body(command, self._defining, writer)
        elif found := _ROWS.match(statement):
            await self._select_rows(found[1], _unquoted(found[4]))
        elif found := _SEQUENCE.match(statement):
            sequence = _unquoted(found[1])
            self._watch(sequence, ContentKind.SEQUENCE, RowsDigest(b""))
            self._send(bytes([wire.COM_QUERY]) + next_value(sequence).encode("utf-8", "surrogateescape"))
        else:
            if _BEGINS.match(statement):
                await self._begin()
            elif _LISTED.match(statement):
                listing = self._tables.listing(self._database).encode("utf-8", "surrogateescape")
                if len(listing) >= wire.MAX_PACKET_BYTES:
                    raise DumpRefused("the names of its tables are too long together for a dump")
                command = bytes([wire.COM_QUERY]) + listing
            elif found := _SHOWN.match(statement):
                await self._hold(_unquoted(found[1]))
            self._send(command)

    def _send(self, command: bytes) -> None:
        self._upstream._write_bytes(wire.packet(0, command))

    async def _begin(self) -> None:
        """Lists what there is, before the snapshot: what is made later isn't looked for, and what is gone at once is
        found to be missing."""
        await self._stop_passing()
        self._tables = await TableList.read(self._upstream, self._database)
        self._ids = await table_ids(self._administrator, self._database)
        self._definitions = await definitions(self._administrator, self._database)
        [(now,)] = await self._upstream.run("SELECT UTC_TIMESTAMP(6)")
        self.consistent_at = now.replace(tzinfo=UTC)
        self._beginning = True

    async def _hold(self, table: str) -> None:
        """Keeps the table's definition as it is from now until its rows are there."""
        if self._tables.kinds.get(table) != BASE or table in self._described:
            return
        await self._stop_passing()
        try:
            self._columns[table] = await held_selection(self._upstream, self._database, table)
            await self._check_documents(table)
        except pymysql.MySQLError as error:
            if not SESSION_LOST.isdisjoint(error.args[:1]) or not self._upstream.usable:
                raise HostUnavailable(SESSION_ENDED) from error
            if error.args[:1] == (LOCK_WAIT_TIMEOUT,):
                raise DumpRefused(f"the table {named(table)} is locked") from error
            raise DumpRefused(f"the table {named(table)}: {shortened(str(error.args[-1]))}") from error

    async def _check_documents(self, table: str) -> None:
        query = inexact_documents(self._columns[table], table)
        # It reads the whole table: as the rows are read, within the time that the dump has.
        if query is not None and await self._upstream.run_for_long(query):
            raise DumpRefused(
                f"the table {named(table)} has JSON with values that JSON's text can't express (dates, binary strings "
                "or exact numbers made by SQL functions)"
            )

    async def _select_rows(self, asked: str, table: str) -> None:
        columns = self._columns.pop(table, None)
        if columns is None:
            await self._stop_passing()
            columns = await selection(self._upstream, self._database, table)
        names = [_unquoted(name) for name in _COLUMN.findall(asked)]
        if names and names != [*columns]:
            raise DumpRefused(f"the table {named(table)} has other columns than the dump tool asked for")
        self._watch(table, ContentKind.TABLE, RowsDigest(seed(columns)))
        self._send(bytes([wire.COM_QUERY]) + select_rows(columns, table).encode("utf-8", "surrogateescape"))

    def _watch(self, name: str, kind: ContentKind, digest: RowsDigest) -> None:
        if name in self._described:
            raise EngineError("the dump tool asked for a table twice")
        self._described.add(name)
        self._watched = Watched(name=name, kind=kind, digest=digest)
        self.reading = name

    async def _finish_watching(self) -> None:
        if self._beginning:
            self._beginning = False
            self.begun.set()
        if self._watched is None:
            return
        watched, self._watched = self._watched, None
        # Otherwise the tool got an error, and says what it is.
        if watched.digest.complete():
            rows = watched.digest.count()
            if rows is None:
                await self._stop_passing()
                [(rows,)] = await self._upstream.run("SELECT FOUND_ROWS()")
            self.contents.append(
                Content(
                    name=watched.name,
                    kind=watched.kind,
                    rows=int(rows),
                    fingerprint=watched.digest.hexdigest(),
                )
            )

    async def _show_body(self, command: bytes, definition: "_ShownDefinition", writer: asyncio.StreamWriter) -> None:
        self._administrator._write_bytes(wire.packet(0, command))
        ends, first = 0, True
        while ends < _ANSWER_EOFS:
            head = await self._administrator._read_bytes(4)
            length = int.from_bytes(head[:3], "little")
            definition.count(length)
            payload = await self._administrator._read_bytes(length)
            writer.write(head + payload)
            if first and payload[0] in (0x00, 0xFF):
                break
            ends += payload[0] == 0xFE and len(payload) < 9
            first = False
        await _drained(writer)

    async def check_complete(self) -> None:
        """Raises `DumpRefused` unless the tool has asked for everything that was there at the dump's moment."""
        for name in self._tables.kinds:
            if name not in self._described:
                raise DumpRefused(f"the table {named(name)} was dropped or renamed while it was dumped")
        check_names_kept(self._ids, await table_ids(self._administrator, self._database))
        now = await definitions(self._administrator, self._database)
        self.contents = sorted([*self.contents, *unchanged(self._definitions, now)])


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """A table whose rows are on their way to the tool."""

    name: str
    kind: ContentKind
    digest: RowsDigest


class _ShownDefinition:
    """A definition that is on its way to the tool."""

    def __init__(self, what: str) -> None:
        """`what` names the definition, as the tool asked for it."""
        self._what = what
        self._bytes = 0

    def count(self, more: int) -> None:
        """Counts more bytes of it. Raises `DumpRefused` for more than a load takes."""
        self._bytes += more
        if self._bytes > DEFINITION_BYTES:
            most = f"{LONG_BYTES // 2**20} MiB"
            raise DumpRefused(
                f"the definition of the {shortened(self._what)} is above {most}, the most that a dump takes"
            )


class ToolEnded(Exception):
    """The tool closed its connection without a good-bye: it says why."""


async def _drained(writer: asyncio.StreamWriter) -> None:
    try:
        await writer.drain()
    except OSError as error:
        raise ToolEnded from error


def next_value(sequence: str) -> str:
    return f"SELECT next_not_cached_value FROM {quote_name(sequence)}"  # noqa: S608 - a quoted name


def _unquoted(name: str) -> str:
    return name.replace("``", "`")
