"""Waiting for a row to change, without polling in a tight loop."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar
from uuid import UUID

import asyncpg
import structlog

from app.store.session import APPLICATION_NAME, fetch

_CHANNEL = "headwater_database"

Seen = TypeVar("Seen")
log = structlog.get_logger(__name__)


async def announce(database: UUID) -> None:
    """Notifies every waiter in every process that this database's row has changed. Call it inside the transaction:
    PostgreSQL sends the notification on commit and drops it on rollback."""
    await fetch("SELECT pg_notify($1, $2)", _CHANNEL, str(database))


async def work_on_notices(
    dsn: str,
    channel: str,
    work: Callable[[], Awaitable[bool]],
    *,
    failure: str,
    payload: str | None = None,
    changed: asyncio.Event | None = None,
    fallback_seconds: float = 0.5,
    **fields: str,
) -> None:
    """Calls `work` at each notice on the channel, and after `fallback_seconds` without one, for those that were lost;
    again and again while it returns True, which says that there may be more to do. Runs until it is cancelled.

    `payload`: only notices with this text count. `changed`: something else that calls for the work. An error is logged
    as `failure` with these fields, and the work repeated: our own database may be away, and what is due stays due.
    """
    wake = changed or asyncio.Event()

    def heard(text: str) -> None:
        if payload in (None, text):
            wake.set()

    async with _listening(dsn, channel, heard):
        while True:
            wake.clear()
            try:
                while await work():
                    pass
            except Exception as fault:
                log.warning(failure, reason=str(fault) or type(fault).__name__, **fields)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(wake.wait(), fallback_seconds)


@asynccontextmanager
async def _listening(dsn: str, channel: str, heard: Callable[[str], None]) -> AsyncIterator[None]:
    listener = asyncio.create_task(_listen(dsn, channel, heard))
    try:
        yield
    finally:
        listener.cancel()
        await asyncio.gather(listener, return_exceptions=True)


async def _listen(dsn: str, channel: str, heard: Callable[[str], None]) -> None:
    """Calls `heard` with the text of each notification until it is cancelled, and reconnects whenever the connection
    is lost. Notifications sent meanwhile are lost, so listeners have to check by themselves from time to time."""
    while True:
        try:
            await _listen_once(dsn, channel, heard)
        except Exception as fault:
            # Any exception: without its listener the process would answer late for ever.
            log.warning("listener_lost", reason=str(fault) or type(fault).__name__)
        await asyncio.sleep(0.5)


async def _listen_once(dsn: str, channel: str, heard: Callable[[str], None]) -> None:
    settings = {"application_name": f"{APPLICATION_NAME} listener"}
    connection = await asyncpg.connect(dsn, timeout=5, server_settings=settings)
    try:
        closed = asyncio.Event()
        connection.add_termination_listener(lambda _: closed.set())
        await connection.add_listener(channel, lambda *notice: heard(notice[3]))
        await closed.wait()
    finally:
        connection.terminate()


class RowWatch:
    """Waits for changes of rows: one listening connection for the process, and the waiters behind it."""

    fallback_seconds = 1.0
    """How often a waiter checks by itself, in case a notification was lost while the listener was disconnected."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._waiters: dict[str, set[asyncio.Event]] = defaultdict(set)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["RowWatch"]:
        """Listens during the block, and reconnects whenever the connection is lost."""
        async with _listening(self._dsn, _CHANNEL, self._on_notice):
            yield self

    async def wait_for(self, database: UUID, look: Callable[[], Awaitable[Seen | None]], timeout: float) -> Seen | None:
        """The first result of `look` that is not None; None after `timeout` seconds. Calls `look` immediately and
        after each notification."""
        changed = asyncio.Event()
        key = str(database)
        self._waiters[key].add(changed)
        try:
            async with asyncio.timeout(timeout):
                while (seen := await look()) is None:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(changed.wait(), self.fallback_seconds)
                    changed.clear()
                return seen
        except TimeoutError:
            return None
        finally:
            self._waiters[key].discard(changed)
            if not self._waiters[key]:
                del self._waiters[key]

    def _on_notice(self, database: str) -> None:
        for changed in self._waiters.get(database, ()):
            changed.set()
