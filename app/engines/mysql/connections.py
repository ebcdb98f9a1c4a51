"""Connections to one MySQL or MariaDB server: a bounded pool for the administrator, single ones for tenants."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from app.core.tracing.spans import SpanKind, span
from app.engines.base import AdminAddress
from app.engines.errors import MAX_TENANT_RESPONSE_BYTES
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.errors import translated, translated_login

LOCK_SECONDS = 2
POOL_SIZE = 8
IDLE_SECONDS = 60


class MySQLConnections:
    """Connections to one server, for the event loop that first used them."""

    def __init__(self, address: AdminAddress) -> None:
        self._address = address
        self._room = asyncio.Semaphore(POOL_SIZE)
        self._idle: list[tuple[float, MySQLConnection]] = []
        self._closed = False
        self._long_lived: MySQLConnection | None = None
        self._long_lived_lock = asyncio.Lock()
        self.reading_transactions = asyncio.Lock()
        self.host = f"{address.host}:{address.port}"

    async def close(self) -> None:
        self._closed = True
        idle, self._idle = self._idle, []
        for _, connection in idle:
            await connection.finish()
        long_lived, self._long_lived = self._long_lived, None
        if long_lived is not None:
            long_lived.quit()

    @asynccontextmanager
    async def admin(self) -> AsyncIterator[MySQLConnection]:
        """A pooled connection of the administrator. Translates errors inside the block."""
        self._closed = False
        with translated(self.host):
            async with self._room:
                connection = await self._reusable() or await self._connect_admin()
                try:
                    yield connection
                except BaseException:
                    # Ending the session also ends whatever it was doing, and its locks.
                    connection.close()
                    raise
                self._keep(connection)

    @asynccontextmanager
    async def long_lived(self) -> AsyncIterator[MySQLConnection]:
        """A connection of the administrator that stays open, for one caller at a time: it works when the server admits
        nobody any more."""
        async with self._long_lived_lock:
            with translated(self.host):
                if self._long_lived is None or not self._long_lived.usable:
                    self._long_lived = await self._connect_admin()
                try:
                    yield self._long_lived
                except BaseException:
                    if self._long_lived is not None:
                        self._long_lived.close()
                    self._long_lived = None
                    raise

    @asynccontextmanager
    async def extra(self) -> AsyncIterator[MySQLConnection]:
        """A connection of the administrator outside the pool, for a caller that already holds one of the pool:
        otherwise as many callers as the pool has connections would wait for each other."""
        connection = await self._connect_admin()
        try:
            yield connection
        finally:
            await connection.finish()

    async def helper(self, user: str, password: str, database: str | None) -> MySQLConnection:
        """An open session of an account that nobody else can log in to; the caller ends it. Raises `LoginRefused`."""
        with translated_login(self.host):
            return await self._open(user=user, password=password, db=database)

    @asynccontextmanager
    async def tenant(self, user: str, password: str, database: str) -> AsyncIterator[MySQLConnection]:
        """A connection of the tenant in its own database. Raises `LoginRefused`."""
        with translated_login(self.host), span("log in", SpanKind.CLIENT):
            connection = await self._open(
                user=user, password=password, db=database, max_response_bytes=MAX_TENANT_RESPONSE_BYTES
            )
        with translated(self.host):
            try:
                yield connection
            finally:
                await connection.finish()

    async def unprivileged(self, user: str, password: str, database: str) -> MySQLConnection:
        """An open session for untrusted statements; the caller ends it. Values are bytes. Raises `LoginRefused`."""
        with translated_login(self.host):
            return await self._open(
                user=user,
                password=password,
                db=database,
                max_response_bytes=MAX_TENANT_RESPONSE_BYTES,
                use_unicode=False,
                conv={},
            )

    async def _connect_admin(self) -> MySQLConnection:
        return await self._open(
            user=self._address.user,
            password=self._address.password,
            # A prepared XA branch holds its tables for ever, and the server's default timeouts are 86400 s and 50 s.
            init_command=(f"SET SESSION lock_wait_timeout = {LOCK_SECONDS}, innodb_lock_wait_timeout = {LOCK_SECONDS}"),
        )

    async def _open(self, **options: Any) -> MySQLConnection:
        address = self._address
        return await MySQLConnection.open(address.tls, host=address.host, port=address.port, **options)

    async def _reusable(self) -> MySQLConnection | None:
        while self._idle:
            _, connection = self._idle.pop()
            settled = False
            try:
                settled = await connection.settle()
            finally:
                if not settled:
                    connection.close()
            if settled:
                return connection
        return None

    def _keep(self, connection: MySQLConnection) -> None:
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
