"""Connections to one MySQL or MariaDB server: a bounded pool for the administrator, single ones for tenants."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiomysql
from pymysql.constants import CLIENT

from app.engines.base import AdminAddress
from app.engines.mysql.errors import translated, translated_login
from app.engines.mysql.flavours import Flavour, flavour_of

CONNECT_SECONDS = 3
STATEMENT_SECONDS = 60
CLOSE_SECONDS = 1
LOCK_SECONDS = 2
POOL_SIZE = 8
IDLE_SECONDS = 60

_QUIT = b"\x01\x00\x00\x00\x01"


def _opportunistic() -> ssl.SSLContext:
    """Encrypts where the server can, and proves nothing about who it is: as PostgreSQL's `prefer` does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


_OPPORTUNISTIC = _opportunistic()
"""Making one takes longer than a login."""


class _Cursor(aiomysql.Cursor):  # type: ignore[misc]  # the driver is untyped
    async def _show_warnings(self, conn: Any) -> None:
        """No second query for the warnings of a first: `IF EXISTS` warns by design."""


class Connection(aiomysql.Connection):  # type: ignore[misc]  # the driver is untyped
    """One statement an answer, TLS where the server has it, and every wait bounded."""

    def __init__(self, **options: Any) -> None:
        super().__init__(autocommit=True, charset="utf8mb4", cursorclass=_Cursor, ssl=_OPPORTUNISTIC, **options)
        # The driver switches it on and has no option for it: a value that escapes its quotes could then
        # begin a statement of its own.
        self.client_flag &= ~CLIENT.MULTI_STATEMENTS

    @classmethod
    async def open(cls, **options: Any) -> "Connection":
        connection = cls(**options)
        # The driver's own timeout ends before the server's greeting.
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await connection._connect()
        except BaseException:
            connection.close()
            raise
        return connection

    async def _get_server_information(self) -> None:
        await super()._get_server_information()
        if not self.server_capabilities & CLIENT.SSL:
            self._ssl_context = None
            self.client_flag &= ~CLIENT.SSL

    @property
    def flavour(self) -> Flavour:
        return flavour_of(self.get_server_info())

    @property
    def usable(self) -> bool:
        return not (self.closed or self._reader.at_eof() or self._reader.exception())

    def quit(self) -> None:
        """Closes without waiting, but not without a word: the server would log an aborted connection."""
        if self.usable:
            self._writer.write(_QUIT)
        self.close()

    async def finish(self) -> None:
        """`quit`, and waits for it."""
        writer = self._writer
        self.quit()
        if writer is not None:
            # A peer that doesn't say goodbye is left to the operating system.
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await writer.wait_closed()

    async def run(self, statement: str, values: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """The rows of the answer, none for a statement that has no rows. A list for a `%s` stands for `(…, …)`."""
        statement, values = _spread(statement, values or ())
        async with asyncio.timeout(STATEMENT_SECONDS), self.cursor() as cursor:
            await cursor.execute(statement, values or None)
            return list(await cursor.fetchall())


class Connections:
    """The ways into one server. They belong to the event loop that first used them."""

    def __init__(self, address: AdminAddress) -> None:
        self._address = address
        self._room = asyncio.Semaphore(POOL_SIZE)
        self._idle: list[tuple[float, Connection]] = []
        self._closed = False
        self.reading_transactions = asyncio.Lock()
        self.host = f"{address.host}:{address.port}"

    async def close(self) -> None:
        self._closed = True
        idle, self._idle = self._idle, []
        for _, connection in idle:
            await connection.finish()

    @asynccontextmanager
    async def admin(self) -> AsyncIterator[Connection]:
        """A pooled administrator's connection. Errors inside are translated."""
        self._closed = False
        with translated(self.host):
            async with self._room:
                connection = self._reusable() or await self._connect_admin()
                try:
                    yield connection
                except BaseException:
                    # Whatever it was in the middle of, a lock included, ends with the session.
                    connection.close()
                    raise
                self._keep(connection)

    @asynccontextmanager
    async def extra(self) -> AsyncIterator[Connection]:
        """One more administrator's connection, for a caller who already holds one of the pool: were it of the
        pool too, as many callers as the pool has places would wait for each other."""
        connection = await self._connect_admin()
        try:
            yield connection
        finally:
            await connection.finish()

    @asynccontextmanager
    async def tenant(self, name: str, password: str) -> AsyncIterator[Connection]:
        """The tenant itself in its own database. Raises `LoginRefused`."""
        with translated_login(self.host):
            connection = await Connection.open(
                host=self._address.host, port=self._address.port, user=name, password=password, db=name
            )
        with translated(self.host):
            try:
                yield connection
            finally:
                await connection.finish()

    async def unprivileged(self, user: str, password: str, database: str) -> Connection:
        """An open session for statements that nobody vouches for; the caller ends it. Its values are octets, as they
        come. Raises `LoginRefused`."""
        with translated_login(self.host):
            return await Connection.open(
                host=self._address.host,
                port=self._address.port,
                user=user,
                password=password,
                db=database,
                use_unicode=False,
                conv={},
            )

    async def _connect_admin(self) -> Connection:
        return await Connection.open(
            host=self._address.host,
            port=self._address.port,
            user=self._address.user,
            password=self._address.password,
            # A prepared XA branch holds its tables for ever, and the server's own limits are 86400 s and 50 s.
            init_command=(f"SET SESSION lock_wait_timeout = {LOCK_SECONDS}, innodb_lock_wait_timeout = {LOCK_SECONDS}"),
        )

    def _reusable(self) -> Connection | None:
        while self._idle:
            _, connection = self._idle.pop()
            if connection.usable:
                return connection
            connection.close()
        return None

    def _keep(self, connection: Connection) -> None:
        if self._closed or not connection.usable:
            connection.quit()
            return
        self._idle.append((time.monotonic(), connection))
        asyncio.get_running_loop().call_later(IDLE_SECONDS + 1, self._drop_idle)

    def _drop_idle(self) -> None:
        now = time.monotonic()
        for since, connection in list(self._idle):
            if now - since >= IDLE_SECONDS:
                self._idle.remove((since, connection))
                connection.quit()


def _spread(statement: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    if not values:
        return statement, []
    marks = [f"({', '.join(['%s'] * len(value))})" if isinstance(value, list) else "%s" for value in values]
    flat = [item for value in values for item in (value if isinstance(value, list) else [value])]
    first, *rest = statement.split("%s")
    return first + "".join(mark + piece for mark, piece in zip(marks, rest, strict=True)), flat
