"""Connections and transactions on our own PostgreSQL."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from typing import Any, TypeVar, cast

import msgspec
import structlog
from asyncpg import Connection
from piccolo.engine.postgres import PostgresTransaction

from app.core.context import current_actor
from app.core.tracing.spans import SpanKind, span
from app.store.connections import StoreConnection
from app.store.engine import DB
from app.store.servers import connect_to_store

Row = TypeVar("Row", bound=msgspec.Struct)
Value = TypeVar("Value")

log = structlog.get_logger(__name__)

APPLICATION_NAME = "headwater"

CONNECT_SECONDS = 5.0
"""How long a login to our own database may take."""
STATEMENT_SECONDS = 30.0
"""How long a statement may take, except in a `long_transaction`."""
ACQUIRE_SECONDS = 20.0
"""How long a connection is waited for, of the pool or of a user's share of it."""
_TRACED_AS = {"db.system.name": "postgresql", "db.namespace": APPLICATION_NAME}
"""Transactions have spans, single statements don't."""
_IDLE_IN_TRANSACTION = "60s"
"""Longer than any transaction of ours. PostgreSQL ends what exceeds it, so that no lock outlives its owner."""

os.environ.setdefault("PICCOLO_CONF", "app.store.piccolo_conf")


@asynccontextmanager
async def connected(
    dsn: str, *, min_size: int = 1, max_size: int = 20, close_seconds: float = 5.0
) -> AsyncIterator[None]:
    """Opens the connection pool for the block. All queries and transactions of this process use it. After the block,
    statements that are under way have `close_seconds`: a connection that is never given back must not keep the process
    from ending."""
    DB.config = {
        "dsn": dsn,
        "timeout": CONNECT_SECONDS,
        "command_timeout": STATEMENT_SECONDS,
        "server_settings": {
            "application_name": APPLICATION_NAME,
            "timezone": "UTC",
            "idle_in_transaction_session_timeout": _IDLE_IN_TRANSACTION,
        },
    }
    DB.share(max_size)
    await DB.start_connection_pool(
        min_size=min_size,
        max_size=max_size,
        reset=keep_session,
        connection_class=StoreConnection,
        connect=connect_to_store,
    )
    try:
        yield
    finally:
        await _close_pool(close_seconds)


async def _close_pool(seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await DB.close_connection_pool()
    except TimeoutError:
        log.warning("store_connections_in_use", waited_seconds=seconds)
        if DB.pool is not None:
            DB.pool.terminate()
            DB.pool = None


async def keep_session(_: Connection) -> None:
    """Replaces asyncpg's clean-up when a connection returns to the pool, which would double the round trips of every
    query. Code that changes a session's state must undo it; only `app.store.locks` does so. asyncpg still rolls back
    an open transaction before it calls this."""


class _Transaction(msgspec.Struct, frozen=True):
    """What Piccolo expects in its context in order to run a query in the transaction."""

    connection: Connection


@asynccontextmanager
async def transaction() -> AsyncIterator[None]:
    """One transaction: queries inside the block run in it. A nested block joins the outer one.

    Not Piccolo's own, which loses its connection for ever when it is cancelled at its beginning.
    """
    if DB.current_transaction.get() is not None:
        yield
        return
    with span("transaction", SpanKind.CLIENT, _TRACED_AS):
        async with raw_connection() as connection, _begun(connection):
            yield


@asynccontextmanager
async def long_transaction() -> AsyncIterator[None]:
    """A transaction whose statements may take any time, on a connection of its own. It joins no other."""
    options = {**DB.config, "command_timeout": None, "connection_class": StoreConnection}
    with span("transaction", SpanKind.CLIENT, _TRACED_AS):
        connection = await connect_to_store(**options)
        try:
            async with _begun(connection):
                yield
        finally:
            await connection.close()


@asynccontextmanager
async def _begun(connection: Connection) -> AsyncIterator[None]:
    async with connection.transaction():
        token = DB.current_transaction.set(cast(PostgresTransaction, _Transaction(connection)))
        try:
            yield
        finally:
            DB.current_transaction.reset(token)


@asynccontextmanager
async def raw_connection() -> AsyncIterator[Connection]:
    """A pooled connection outside any transaction, for what is bound to a session. Raises `TimeoutError` when none
    becomes free, of the pool or of the share of the user who acts."""
    pool, actor = DB.pool, current_actor()
    assert pool is not None, "the store is not connected"
    async with AsyncExitStack() as held:
        # The pool's own timeout would create a task for each query.
        async with asyncio.timeout(ACQUIRE_SECONDS):
            if actor is not None and actor.user_id is not None:
                await held.enter_async_context(DB.shares.slot(actor.user_id))
            connection = await pool.acquire()
        try:
            yield connection
        finally:
            await pool.release(connection)


async def fetch_all(kind: type[Row], sql: str, *arguments: Any) -> list[Row]:
    """All rows as structs of that type, whose fields are the query's columns. As every function here, it takes a
    statement with `$1` parameters, and runs it in the current transaction if there is one."""
    return [msgspec.convert(dict(row), kind) for row in await fetch(sql, *arguments)]


async def fetch_one(kind: type[Row], sql: str, *arguments: Any) -> Row | None:
    """The first row as a struct of that type, whose fields are the query's columns."""
    rows = await fetch(sql, *arguments)
    return msgspec.convert(dict(rows[0]), kind) if rows else None


async def fetch_values(kind: type[Value], sql: str, *arguments: Any) -> list[Value]:
    """The first column of all rows."""
    return [msgspec.convert(row[0], kind) for row in await fetch(sql, *arguments)]


async def fetch_value(kind: type[Value], sql: str, *arguments: Any) -> Value | None:
    """The first column of the first row; None where there is no row, or it has NULL there."""
    rows = await fetch(sql, *arguments)
    value = rows[0][0] if rows else None
    return None if value is None else msgspec.convert(value, kind)


async def fetch_scalar(kind: type[Value], sql: str, *arguments: Any) -> Value:
    """The same of a statement that always returns a row with a value there: a count, an INSERT with RETURNING."""
    value = await fetch_value(kind, sql, *arguments)
    assert value is not None, "the statement returns a value"
    return value


async def fetch_exists(sql: str, *arguments: Any) -> bool:
    """Whether the statement returns a row."""
    return bool(await fetch(sql, *arguments))


async def execute(sql: str, *arguments: Any) -> int:
    """Runs a statement for its effect; returns how many rows it wrote."""
    current = DB.current_transaction.get()
    if current is not None:
        return _count(await current.connection.execute(sql, *arguments))
    async with raw_connection() as connection:
        return _count(await connection.execute(sql, *arguments))


def _count(tag: str) -> int:
    """The number of rows in PostgreSQL's command tag, 0 where it has none: `UPDATE 2`, `INSERT 0 1`, `LOCK TABLE`."""
    last = tag.rpartition(" ")[2]
    return int(last) if last.isdecimal() else 0


async def fetch(sql: str, *arguments: Any) -> list[Any]:
    """Rows as the driver has them, without types: for this folder, and for tests that look into tables."""
    current = DB.current_transaction.get()
    if current is not None:
        return list(await current.connection.fetch(sql, *arguments))
    async with raw_connection() as connection:
        return list(await connection.fetch(sql, *arguments))


class Statement(msgspec.Struct, frozen=True):
    """One step of `execute_chain`: it has `{condition}` as a term of its WHERE clause, and returns one row if it did
    what it is for."""

    sql: str
    arguments: tuple[Any, ...]


async def execute_chain(*statements: Statement) -> int:
    """Runs them as one statement, at the cost of one round trip and one commit: each on the condition that the one
    before it returned a row. All of them see the tables as they were before the first. Returns how many of them
    returned a row."""
    sql = _chained(tuple((one.sql, len(one.arguments)) for one in statements))
    with span("transaction", SpanKind.CLIENT, _TRACED_AS):
        (row,) = await fetch(sql, *(argument for one in statements for argument in one.arguments))
    count: int = row[0]
    return count


@cache
def _chained(statements: tuple[tuple[str, int], ...]) -> str:
    """`WITH step_0 AS (…), step_1 AS (…)`, with the parameters numbered through. There are few different chains."""
    steps, before = [], 0
    for number, (sql, parameters) in enumerate(statements):
        condition = f"EXISTS (SELECT FROM step_{number - 1})" if number else "true"
        steps.append(f"step_{number} AS ({_renumbered(sql, before).replace('{condition}', condition)})")
        before += parameters
    done = " + ".join(f"(SELECT count(*) FROM step_{number})" for number in range(len(statements)))  # noqa: S608
    return f"WITH {', '.join(steps)} SELECT {done}"


def _renumbered(sql: str, by: int) -> str:
    return re.sub(r"\$(\d+)", lambda parameter: f"${int(parameter[1]) + by}", sql)
