"""One connection to a MySQL or MariaDB server."""

import asyncio
import contextlib
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import aiomysql
import pymysql
from pymysql.constants import CLIENT, COMMAND

from app.engines.errors import MAX_RESPONSE_BYTES, ResponseTooLarge
from app.engines.mysql.flavours import Flavour, flavour_of
from app.engines.mysql.login import GuardedLogin, UnprovenServer
from app.engines.steps import statement_span
from app.engines.tls import TlsPolicy

CONNECT_SECONDS = 3
STATEMENT_SECONDS = 60
CLOSE_SECONDS = 1
LONGEST_IDLE_SECONDS = 31_536_000
"""The most that both servers take as `wait_timeout`: a year."""

_QUIT = b"\x01\x00\x00\x00\x01"
_DISCARDED_PACKET_BYTES = 64 * 1024
"""The beginning of a discarded packet that is kept: enough to distinguish a row from an error or the end."""


class _Cursor(aiomysql.Cursor):  # type: ignore[misc]  # the driver is untyped
    async def _show_warnings(self, conn: Any) -> None:
        """No extra query for warnings: `IF EXISTS` warns by design."""


class _StreamCursor(aiomysql.SSCursor):  # type: ignore[misc]  # the driver is untyped
    """Rows one by one. After a cut connection there is nothing to finish."""

    async def _show_warnings(self, conn: Any) -> None:
        """No extra query for warnings, which the driver would print: they may quote a statement."""


class MySQLConnection(GuardedLogin):
    """Allows one statement for each call, applies the host's TLS policy, and limits every wait and every response."""

    _received = 0
    _discarding = False
    _unread = False
    _held: list[bytes] | None = None
    parting: str | None = None
    """A statement without rows that comes last before the connection goes back to the pool."""

    def __init__(self, policy: TlsPolicy, *, max_response_bytes: int = MAX_RESPONSE_BYTES, **options: Any) -> None:
        """A statement's response may have `max_response_bytes` bytes."""
        self.max_response_bytes = max_response_bytes
        super().__init__(policy, autocommit=True, charset="utf8mb4", cursorclass=_Cursor, **options)
        # The driver enables multiple statements and has no option against it: a value that escapes its quotes could
        # begin a statement of its own.
        self.client_flag &= ~CLIENT.MULTI_STATEMENTS

    @classmethod
    async def open(cls, policy: TlsPolicy, **options: Any) -> "MySQLConnection":
        connection = cls(policy, **options)
        # The driver's own timeout doesn't include the server's greeting.
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await connection._connect()
        except (AttributeError, LookupError, ValueError, struct.error) as error:
            connection.close()
            raise UnprovenServer("its login isn't the protocol's") from error
        except BaseException:
            connection.close()
            raise
        return connection

    async def _execute_command(self, command: int, sql: str | bytes) -> None:
        if self._unread:
            raise RuntimeError("nothing follows the last statement")
        self._received = 0
        await super()._execute_command(command, sql)

    async def _read_bytes(self, num_bytes: int) -> bytes:
        """Counts bytes before they are read, because the driver joins a row's packets before it looks at any. Raises
        `ResponseTooLarge`."""
        if self._discarding and num_bytes > _DISCARDED_PACKET_BYTES:
            return await self._read_beginning(num_bytes)
        self._received += 0 if self._discarding else num_bytes
        if self._received > self.max_response_bytes:
            self.close()
            raise ResponseTooLarge(self.max_response_bytes)
        octets: bytes = await super()._read_bytes(num_bytes)
        return octets

    async def _read_beginning(self, num_bytes: int) -> bytes:
        kept: bytes = await super()._read_bytes(_DISCARDED_PACKET_BYTES)
        left = num_bytes - _DISCARDED_PACKET_BYTES
        while left:
            left -= len(await super()._read_bytes(min(left, _DISCARDED_PACKET_BYTES)))
        return kept

    @property
    def flavour(self) -> Flavour:
        return flavour_of(self.get_server_info())

    @property
    def usable(self) -> bool:
        return not (self.closed or self._reader.at_eof() or self._reader.exception())

    def quit(self) -> None:
        """Sends the quit command and closes without waiting. Without it the server would log an aborted connection."""
        if self.usable:
            self._writer.write(_QUIT)
        self.close()

    async def finish(self) -> None:
        """Like `quit`, and waits until it is closed."""
        writer = self._writer
        self.quit()
        if writer is not None:
            await _closed(writer)

    async def stay_open(self) -> None:
        """Has the server keep the session however long it is idle. By itself it ends one after eight hours, or as soon
        as its operator has set. A client that is gone is noticed all the same, by TCP's keepalive: on Linux after two
        hours."""
        await self.run(f"SET SESSION wait_timeout = {LONGEST_IDLE_SECONDS:d}")

    async def run(self, statement: str, values: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """The rows of the response; none for a statement without rows. A list as a value stands for `(…, …)`."""
        (rows,) = await self.run_in_turn((statement, values or ()))
        return rows

    async def run_for_long(self, statement: str) -> list[tuple[Any, ...]]:
        """The same, however long the server takes: for a caller with a time limit of its own, who ends the session on
        the server when that is over."""
        with statement_span(statement):
            await self._execute_command(COMMAND.COM_QUERY, statement)
            return await self._next_response()

    async def run_in_turn(self, *statements: tuple[str, Sequence[Any]]) -> list[list[tuple[Any, ...]]]:
        """The same for several statements that are sent together, without the waits between them. A server begins each
        when it is done with the one before, whether that failed or not. Raises the first error, when all are done."""
        texts = [self._written(statement, values) for statement, values in statements]
        with statement_span(statements[0][0]):
            return await self._responses(texts)

    async def _responses(self, texts: Sequence[str]) -> list[list[tuple[Any, ...]]]:
        async with asyncio.timeout(STATEMENT_SECONDS):
            with self._written_at_once():
                for text in texts:
                    await self._execute_command(COMMAND.COM_QUERY, text)
            return await self._next_responses(len(texts))

    async def _next_responses(self, number: int) -> list[list[tuple[Any, ...]]]:
        """Reads all responses before it raises the first error, so that none of these statements is under way then.
        After the loss of the connection there are no more responses."""
        rows: list[list[tuple[Any, ...]]] = []
        errors: list[pymysql.MySQLError] = []
        for _ in range(number):
            try:
                rows.append(await self._next_response())
            except pymysql.MySQLError as error:
                errors.append(error)
                if self.closed:
                    break
        if errors:
            raise errors[0]
        return rows

    async def run_last(self, statement: str) -> list[tuple[Any, ...]]:
        """The same for the last statement of a connection, which the server ends when it has answered."""
        with statement_span(statement):
            async with asyncio.timeout(STATEMENT_SECONDS):
                with self._written_at_once():
                    await self._execute_command(COMMAND.COM_QUERY, statement)
                    self._write_bytes(_QUIT)
                rows = await self._next_response()
        writer = self._writer
        self.close()
        if self._secure:
            # Without TLS nothing more is said.
            await _closed(writer)
        return rows

    @contextmanager
    def _written_at_once(self) -> Iterator[None]:
        """Sends what the block writes with one system call: a call costs more than the bytes do."""
        self._held = []
        try:
            yield
            self._writer.write(b"".join(self._held))
        finally:
            self._held = None

    def _write_bytes(self, data: bytes) -> None:
        if self._held is None:
            super()._write_bytes(data)
        else:
            self._held.append(data)

    def _written(self, statement: str, values: Sequence[Any]) -> str:
        statement, values = _spread(statement, values)
        text: str = _Cursor(self).mogrify(statement, values or None)
        return text

    async def _next_response(self) -> list[tuple[Any, ...]]:
        self._next_seq_id = 1
        await self._read_query_result()
        return list(self._result.rows or ())

    async def run_and_part(self, statement: str) -> None:
        """Runs the last statement, without rows, before the connection goes back to the pool. `parting` is sent with
        it; the server comes to that afterwards, whether the statement failed or not."""
        with statement_span(statement):
            async with asyncio.timeout(STATEMENT_SECONDS):
                with self._written_at_once():
                    await self._execute_command(COMMAND.COM_QUERY, statement)
                    await self.part()
                await self._next_response()

    async def part(self) -> None:
        """Sends `parting` if that wasn't done yet, and doesn't wait for the server: the response is read before the
        next use."""
        if self.parting is not None:
            parting, self.parting = self.parting, None
            await self._execute_command(COMMAND.COM_QUERY, parting)
            self._unread = True

    async def settle(self) -> bool:
        """Reads the response to `parting`. False if the connection can't be used any more."""
        if not (self.usable and self._unread):
            return self.usable
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._next_response()
        except (OSError, pymysql.MySQLError):
            return False
        self._unread = False
        return self.usable

    async def stream(self, statement: str) -> Any:
        """A cursor over the rows, one by one. Rows that aren't read are lost with the connection."""
        cursor = _StreamCursor(self)
        await cursor.execute(statement)
        return cursor

    async def discard(self, statement: str) -> int:
        """Runs a tenant's statement and discards its rows as they arrive, whatever their number and size. Returns
        the number of rows that it changed, or of its first result."""
        self._discarding = True
        try:
            cursor = await self.stream(statement)
            if cursor.description is None:
                return max(0, int(cursor.rowcount))
            rows = await self._discard_rows()
            while self._result.has_next:
                await self._read_query_result(unbuffered=True)
                await self._discard_rows()
            return rows
        finally:
            self._discarding = False

    async def _discard_rows(self) -> int:
        result, rows = self._result, 0
        while result.unbuffered_active:
            if result._check_packet_is_eof(await self._read_packet()):
                result.unbuffered_active, result.connection = False, None
            else:
                rows += 1
        return rows


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Waits until the connection is closed. A peer that doesn't close is left to the operating system."""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS):
            await writer.wait_closed()


def _spread(statement: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    if not values:
        return statement, []
    marks = [f"({', '.join(['%s'] * len(value))})" if isinstance(value, list) else "%s" for value in values]
    flat = [item for value in values for item in (value if isinstance(value, list) else [value])]
    first, *rest = statement.split("%s")
    return first + "".join(mark + piece for mark, piece in zip(marks, rest, strict=True)), flat
