"""Connections and transactions on our own PostgreSQL."""

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import msgspec
from asyncpg import Connection

from app.store.engine import DB

Row = TypeVar("Row", bound=msgspec.Struct)

APPLICATION_NAME = "headwater"

os.environ.setdefault("PICCOLO_CONF", "app.store.piccolo_conf")


@asynccontextmanager
async def connected(dsn: str, *, min_size: int = 1, max_size: int = 20) -> AsyncIterator[None]:
    """Opens the pool for the block. Every query and transaction of this process runs on it."""
    DB.config = {
        "dsn": dsn,
        "timeout": 5,
        "command_timeout": 30,
        "server_settings": {"application_name": APPLICATION_NAME, "timezone": "UTC"},
    }
    await DB.start_connection_pool(min_size=min_size, max_size=max_size, reset=keep_session)
    try:
        yield
    finally:
        await DB.close_connection_pool()


async def keep_session(_: Connection) -> None:
    """In place of asyncpg's clean-up of a connection that goes back to its pool, which would double the round trips
    of every query. Whoever changes a session's state undoes it: only `app.store.locks` does so."""


def transaction() -> AbstractAsyncContextManager[Any]:
    """One transaction; queries inside the block run in it. A block inside a block joins the outer one."""
    return DB.transaction()


@asynccontextmanager
async def raw_connection() -> AsyncIterator[Connection]:
    """A pooled connection outside any transaction, for what is bound to a session."""
    assert DB.pool is not None, "the store is not connected"
    async with DB.pool.acquire() as connection:
        yield connection


async def fetch(sql: str, *arguments: Any) -> list[Any]:
    """Rows of a query with `$1` parameters, in the current transaction if there is one.

    For what Piccolo can't say: locks, upserts with conditions, joins that feed one struct.
    """
    current = DB.current_transaction.get()
    if current is not None:
        return list(await current.connection.fetch(sql, *arguments))
    assert DB.pool is not None, "the store is not connected"
    return list(await DB.pool.fetch(sql, *arguments))


async def fetch_one(kind: type[Row], sql: str, *arguments: Any) -> Row | None:
    """The first row as a struct of that type, whose fields are the query's columns."""
    rows = await fetch(sql, *arguments)
    return msgspec.convert(dict(rows[0]), kind) if rows else None


async def fetch_all(kind: type[Row], sql: str, *arguments: Any) -> list[Row]:
    """All rows as structs."""
    return [msgspec.convert(dict(row), kind) for row in await fetch(sql, *arguments)]
