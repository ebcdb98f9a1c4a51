"""Locks that serialise work on one tenant database, across all processes."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from asyncpg import Connection

from app.store.connections import is_lost
from app.store.session import raw_connection

_NAMESPACE = b"headwater database lock"
_TRANSFERS = b"headwater transfers lock"
_CLONES = b"headwater clones lock"
_APPLICATIONS = b"headwater applications lock"
LOCK_WAIT_SECONDS = 20.0


class LockBusy(Exception):
    """Another step holds the lock."""


class LockLost(Exception):
    """The connection that held the lock broke, so that another step may have run at the same time as the block."""


@asynccontextmanager
async def database_lock(database: UUID) -> AsyncIterator[None]:
    """Holds the lock for the block. Waits up to `LOCK_WAIT_SECONDS`, then raises `LockBusy`. Raises `LockLost` after a
    block during which the lock was lost.

    The lock belongs to a session on our own PostgreSQL. A worker that dies loses it immediately, and one whose machine
    is cut off within half a minute; one that hangs keeps it, so that a second attempt never runs at the same time.
    """
    async with _locked(_NAMESPACE + database.bytes):
        yield


@asynccontextmanager
async def applications_lock(database: UUID) -> AsyncIterator[None]:
    """Like `database_lock`, for applying blueprints, which takes minutes. It is a separate lock, so that it never
    delays a deletion."""
    async with _locked(_APPLICATIONS + database.bytes):
        yield


@asynccontextmanager
async def transfers_lock(database: UUID) -> AsyncIterator["TransfersLock"]:
    """Like `database_lock`, for loading data into the database, which takes as long as there is data. It is a separate
    lock, so that it never delays a deletion."""
    async with _locked(_TRANSFERS + database.bytes) as connection:
        yield TransfersLock(connection)


class TransfersLock:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def keep_clones_waiting(self, source: UUID) -> None:
        """Keeps other clones of this database waiting until the block ends. The lock is on the same session, so that a
        transfer takes no second session for hours. Raises `LockBusy` at once while another clone has the lock."""
        if not await self._connection.fetchval("SELECT pg_try_advisory_lock($1)", _key(_CLONES + source.bytes)):
            raise LockBusy("another clone of this database is being made")


@asynccontextmanager
async def _locked(name: bytes) -> AsyncIterator[Connection]:
    async with raw_connection() as connection:
        try:
            await _lock(connection, _key(name))
            yield connection
        finally:
            await _unlock(connection)
        if is_lost(connection):
            raise LockLost("the lock was lost while a step was at work")


def _key(name: bytes) -> int:
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "big", signed=True)


async def _lock(connection: Connection, key: int) -> None:
    try:
        await connection.execute("SELECT pg_advisory_lock($1)", key, timeout=LOCK_WAIT_SECONDS)
    except TimeoutError:
        raise LockBusy("another step is at work on this database") from None


async def _unlock(connection: Connection) -> None:
    """Releases whatever locks the connection has. A broken connection has lost them already. One on which unlocking
    fails or is cancelled is closed, which releases them: returned to the pool it would keep them for ever. A failure
    means that the connection broke. Nobody knows when, so the lock counts as lost."""
    if is_lost(connection):
        return
    try:
        await connection.execute("SELECT pg_advisory_unlock_all()")
    except Exception:
        connection.terminate()
    except BaseException:
        connection.terminate()
        raise
