"""Connections to one PostgreSQL server: a bounded pool for the administrator, single ones for the rest."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from app.core.tracing.spans import SpanKind, span
from app.engines.base import AdminAddress
from app.engines.naming import check_name
from app.engines.postgres.encryption import Encryption
from app.engines.postgres.errors import translated, translated_entry, translated_login
from app.engines.postgres.wire import metered
from app.engines.steps import statement_span

CONNECT_SECONDS = 3
STATEMENT_SECONDS = 60
CLOSE_SECONDS = 1
LOCK_SECONDS = 10
POOL_SIZE = 8
IDLE_SECONDS = 60
_TYPES_BYTES = 1024 * 1024
"""The maximum size of the description of a statement's types: some tens of thousands of attributes."""

_ADMIN_SETTINGS = {
    # Every tenant sees it in pg_stat_activity, so it says nothing about the work.
    "application_name": "headwater",
    # Makes the administrator a member of each role it creates, so that it can give the role a schema and end its
    # sessions without being a superuser.
    "createrole_self_grant": "set, inherit",
    # A tenant's objects must never be found in place of the system's.
    "search_path": "pg_catalog",
    "standard_conforming_strings": "on",
    "lock_timeout": f"{LOCK_SECONDS}s",
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    # A session whose worker was cut off ends within half a minute, and not after two hours, with the locks that it has.
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}


_RESERVE = "SELECT count(pg_advisory_lock(pg_backend_pid(), n)) FROM generate_series(1, 64) n"


class _BoundedConnection(asyncpg.Connection):  # type: ignore[misc]  # the driver is untyped
    """Limits the response to each statement."""

    async def execute(self, *args: Any, **options: Any) -> str:
        metered(self).begin()
        status: str = await super().execute(*args, **options)
        return status

    async def _execute(self, *args: Any, **options: Any) -> Any:
        metered(self).begin()
        return await super()._execute(*args, **options)

    async def _copy_out(self, *args: Any, **options: Any) -> str:
        metered(self).begin()
        status: str = await super()._copy_out(*args, **options)
        return status

    async def _introspect_types(self, *args: Any, **options: Any) -> Any:
        """Limits what the driver asks for before a statement with types that it doesn't know: all attributes of
        composite types and of the types within them, of each of which the driver makes objects."""
        with metered(self).at_most(_TYPES_BYTES):
            return await super()._introspect_types(*args, **options)


class _TracedConnection(_BoundedConnection):
    """For our own statements: each has a span, where something is traced."""

    async def execute(self, query: str, *args: Any, **options: Any) -> str:
        if args:  # which the driver then passes to `_execute`
            return await super().execute(query, *args, **options)
        with statement_span(query):
            return await super().execute(query, **options)

    async def _execute(self, query: Any, *args: Any, **options: Any) -> Any:
        with statement_span(query):
            return await super()._execute(query, *args, **options)


class _AdminConnection(_TracedConnection):
    def get_reset_query(self) -> str:
        """What the pool sends when a connection is released. The driver's own query also undoes what these sessions
        never do."""
        return "SELECT pg_advisory_unlock_all()"


class PostgresConnections:
    """Connections to one server. The pool belongs to the event loop that first used it."""

    def __init__(self, address: AdminAddress, settings: Mapping[str, str] | None = None) -> None:
        """`settings` are added to those of the administrator's sessions, or replace them."""
        self.address = address
        self._settings = {**_ADMIN_SETTINGS, **(settings or {})}
        self._pool: Any = None
        self._opening = asyncio.Lock()
        self.connect = Encryption(address.tls).connect
        self._long_lived: Any = None
        self._long_lived_lock = asyncio.Lock()
        self.host = f"{address.host}:{address.port}"

    async def close(self) -> None:
        long_lived, self._long_lived = self._long_lived, None
        if long_lived is not None:
            long_lived.terminate()
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await pool.close()
        except TimeoutError:  # a statement is under way
            pool.terminate()

    @asynccontextmanager
    async def admin(self) -> AsyncIterator[Any]:
        """A pooled connection of the administrator. Translates errors inside the block."""
        with translated(self.host):
            async with (await self._ready()).acquire() as connection:
                yield connection

    @asynccontextmanager
    async def long_lived(self) -> AsyncIterator[Any]:
        """A connection of the administrator that stays open and reserves room in the server's lock table. When
        others have filled that table nobody can log in any more, and a query finds no room for its own locks."""
        async with self._long_lived_lock:
            with translated(self.host):
                if self._long_lived is None or self._long_lived.is_closed():
                    self._long_lived = await self._connect(server_settings=self._settings)
                try:
                    await self._long_lived.execute("SELECT pg_advisory_unlock_all()")
                    yield self._long_lived
                finally:
                    if not self._long_lived.is_closed():
                        # Others may have taken the room meanwhile: then there is none until the next time.
                        with contextlib.suppress(asyncpg.OutOfMemoryError):
                            # Under numbers of its own process id, which no other session of ours uses.
                            await self._long_lived.execute(_RESERVE)

    @asynccontextmanager
    async def locked(self, name: str) -> AsyncIterator[Any]:
        """A connection of the administrator with exclusive access to this tenant.

        The lock outlives a killed worker as long as the server still executes its last statement: without it, a running
        CREATE DATABASE would finish after a `destroy` that found nothing to drop.
        """
        check_name(name)
        async with self.admin() as connection:
            await self.lock(connection, name)
            yield connection

    async def lock(self, connection: Any, name: str) -> None:
        """Takes exclusive access to this tenant too, for as long as the connection is held."""
        check_name(name)
        await connection.execute(f"SELECT pg_advisory_lock(hashtextextended('headwater {name}', 0))")

    @asynccontextmanager
    async def admin_in(self, database: str) -> AsyncIterator[Any]:
        """The administrator inside a tenant's database, for a few catalog statements only. Raises `TenantFull`."""
        with translated_entry(self.host):
            connection = await self._connect(database=database, server_settings=self._settings)
        async with self._finishing(connection):
            yield connection

    @asynccontextmanager
    async def admin_alone(self) -> AsyncIterator[Any]:
        """A connection of the administrator outside the pool, for work that may not wait for the pool."""
        with translated(self.host):
            connection = await self._connect(server_settings=self._settings)
        async with self._finishing(connection):
            yield connection

    @asynccontextmanager
    async def tenant(
        self, name: str, user: str, password: str, settings: dict[str, str] | None = None
    ) -> AsyncIterator[Any]:
        """An account of the tenant in the tenant's database. `settings` override what it has set for its role. Raises
        `LoginRefused`."""
        with translated_login(self.host), span("log in", SpanKind.CLIENT):
            connection = await self._connect(user=user, password=password, database=name, server_settings=settings)
        async with self._finishing(connection):
            yield connection

    async def unprivileged(
        self, user: str, password: str, *, database: str, server_settings: dict[str, str], **options: Any
    ) -> Any:
        """An open session for untrusted statements; the caller ends it. Raises `LoginRefused`."""
        with translated_login(self.host):
            return await self._connect(
                user=user,
                password=password,
                database=database,
                server_settings=server_settings,
                statement_cache_size=0,
                connection_class=_BoundedConnection,
                **options,
            )

    @asynccontextmanager
    async def _finishing(self, connection: Any) -> AsyncIterator[None]:
        """Closes the connection after the block. Translates errors inside it."""
        with translated(self.host):
            try:
                yield
            finally:
                await _finish(connection)

    async def _ready(self) -> Any:
        async with self._opening:
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    connect=self.connect,
                    **self.target(),
                    min_size=0,
                    max_size=POOL_SIZE,
                    max_inactive_connection_lifetime=IDLE_SECONDS,
                    connection_class=_AdminConnection,
                    server_settings=self._settings,
                )
            return self._pool

    async def _connect(self, **overrides: Any) -> Any:
        return await self.connect(**{**self.target(), "connection_class": _TracedConnection, **overrides})

    def target(self) -> dict[str, Any]:
        """The arguments of `asyncpg.connect` for the administrator."""
        return {
            "host": self.address.host,
            "port": self.address.port,
            "user": self.address.user,
            "password": self.address.password,
            "database": self.address.database or "postgres",
            "timeout": CONNECT_SECONDS,
            "command_timeout": STATEMENT_SECONDS,
        }


async def _finish(connection: Any) -> None:
    """Closes the connection. When the server takes long to close its side, what was done stays done, and the operating
    system ends the connection."""
    with contextlib.suppress(TimeoutError):
        await connection.close(timeout=CLOSE_SECONDS)
