"""Locks that serialise work on one database of a tenant's, over all processes."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from asyncpg import Connection, InterfaceError

from app.store.session import raw_connection

_NAMESPACE = b"headwater database lock"
_APPLICATIONS = b"headwater applications lock"
LOCK_WAIT_SECONDS = 20.0


class LockBusy(Exception):
    """Another step holds the lock."""


class LockLost(Exception):
    """The connection that held the lock broke, so another step may have worked beside the block."""


@asynccontextmanager
async def database_lock(database: UUID) -> AsyncIterator[None]:
    """Held for the block. Waits up to `LOCK_WAIT_SECONDS`, then raises `LockBusy`. Raises `LockLost` after a
    block through which it was not held to the end.

    It belongs to a session of our own PostgreSQL: a worker that dies loses it at once, while one that only hangs
    keeps it, so that a second attempt never works beside the first.
    """
    async with _locked(_NAMESPACE + database.bytes):
        yield


@asynccontextmanager
async def applications_lock(database: UUID) -> AsyncIterator[None]:
    """The same for work inside the database, which takes minutes: beside the other, so that it never holds up a
    deletion."""
    async with _locked(_APPLICATIONS + database.bytes):
        yield


@asynccontextmanager
async def _locked(name: bytes) -> AsyncIterator[None]:
    key = int.from_bytes(hashlib.sha256(name).digest()[:8], "big", signed=True)
    async with raw_connection() as connection:
        try:
            await _lock(connection, key)
            yield
        finally:
            await _unlock(connection, key)
        if _is_lost(connection):
            raise LockLost("the lock was lost while a step was at work")


async def _lock(connection: Connection, key: int) -> None:
    try:
        await connection.execute("SELECT pg_advisory_lock($1)", key, timeout=LOCK_WAIT_SECONDS)
    except TimeoutError:
        raise LockBusy("another step is at work on this database") from None


async def _unlock(connection: Connection, key: int) -> None:
    """A connection that broke has lost the lock already. One on which the unlocking fails, or is cancelled, is
    ended, and the lock with it: back in the pool it would keep the lock for ever."""
    if _is_lost(connection):
        return
    try:
        await connection.execute("SELECT pg_advisory_unlock($1)", key)
    except BaseException:
        connection.terminate()
        raise


def _is_lost(connection: Connection) -> bool:
    try:
        closed: bool = connection.is_closed()
    except InterfaceError:  # the pool has taken the broken connection back by itself
        return True
    return closed
