"""Waiting for a row to change, without polling it."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import chain
from typing import TypeVar
from uuid import UUID

import structlog

from app.store.servers import connect_to_store
from app.store.session import APPLICATION_NAME, fetch

CHANNEL = "headwater_database"
"""Notifications that something about a database has changed; the payload is its uuid."""
_PROBE_SECONDS = 5.0
"""How often a silent listener asks whether its connection still works, and how long it waits for the answer."""
_PAUSE_SECONDS = 0.5
"""The pause between two attempts to connect."""

Seen = TypeVar("Seen")
log = structlog.get_logger(__name__)


async def announce(database: UUID) -> None:
    """Notifies every waiter in every process that this database's row has changed. Call it inside the transaction:
    PostgreSQL sends the notification on commit and drops it on rollback."""
    await fetch("SELECT pg_notify($1, $2)", CHANNEL, str(database))


async def work_on_notices(
    dsn: str,
    channel: str,
    work: Callable[[], Awaitable[bool]],
    *,
    failure: str,
    payload: str | None = None,
    changed: asyncio.Event | None = None,
    poll: Callable[[], Awaitable[bool]] | None = None,
    fallback_seconds: float = 0.5,
    **fields: str,
) -> None:
    """Calls `work` at each notice on the channel, whenever it begins to listen, and after `fallback_seconds` without a
    notice; again and again while it returns True, which says that there may be more to do. Runs until it is cancelled.

    `payload`: only notices with this text count. `changed`: something else that calls for the work. `poll`: what is
    called in place of `work` where nothing has called for it. An error is logged as `failure` with these fields, and
    the work repeated: our own database may be away, and what is due stays due.
    """
    wake = changed or asyncio.Event()

    def heard(text: str | None) -> None:
        if text is None or payload in (None, text):
            wake.set()

    async with _listening(dsn, channel, heard):
        look = work
        while True:
            wake.clear()
            try:
                while await look():
                    pass
            except Exception as fault:
                log.warning(failure, reason=str(fault) or type(fault).__name__, **fields)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(fallback_seconds):
                    await wake.wait()
            look = work if wake.is_set() else poll or work


@asynccontextmanager
async def _listening(
    dsn: str, channel: str, heard: Callable[[str | None], None], probe_seconds: float = _PROBE_SECONDS
) -> AsyncIterator[None]:
    listener = asyncio.create_task(_listen(dsn, channel, heard, probe_seconds))
    try:
        yield
    finally:
        listener.cancel()
        await asyncio.gather(listener, return_exceptions=True)


async def _listen(dsn: str, channel: str, heard: Callable[[str | None], None], probe_seconds: float) -> None:
    """Calls `heard` with the text of each notification until it is cancelled, and reconnects whenever the connection
    is lost. Notifications sent meanwhile are lost: `heard` is called with None each time that listening has begun."""
    while True:
        try:
            await _listen_once(dsn, channel, heard, probe_seconds)
        except Exception as fault:
            # Any exception: without its listener the process would answer late for ever.
            log.warning("listener_lost", reason=str(fault) or type(fault).__name__)
        await asyncio.sleep(_PAUSE_SECONDS)


async def _listen_once(dsn: str, channel: str, heard: Callable[[str | None], None], probe_seconds: float) -> None:
    settings = {"application_name": f"{APPLICATION_NAME} listener"}
    connection = await connect_to_store(dsn, timeout=5, server_settings=settings)
    try:
        closed = asyncio.Event()
        connection.add_termination_listener(lambda _: closed.set())
        await connection.add_listener(channel, lambda *notice: heard(notice[3]))
        # From here on every commit is heard of. Whoever reads a row now sees all commits before.
        heard(None)
        while not closed.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(probe_seconds):
                    await closed.wait()
            # A network that swallows packets leaves a connection that looks open for hours.
            await connection.execute("SELECT 1", timeout=probe_seconds)
    finally:
        connection.terminate()


class RowWatch:
    """Waits for changes of rows: one listening connection for the process, and the waiters behind it.

    A waiter is woken by notifications alone, so it costs nothing while nothing happens. When notifications may have
    been lost, because the listening connection was, all waiters are woken once it is back.
    """

    def __init__(self, dsn: str, *, probe_seconds: float = _PROBE_SECONDS) -> None:
        """`probe_seconds`: how soon a listening connection that has died without a word is noticed."""
        self._dsn = dsn
        self._probe_seconds = probe_seconds
        self._waiters: dict[str, set[asyncio.Event]] = defaultdict(set)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["RowWatch"]:
        """Listens during the block, and reconnects whenever the connection is lost."""
        async with _listening(self._dsn, CHANNEL, self._on_notice, self._probe_seconds):
            yield self

    @contextmanager
    def changes(self, database: UUID) -> Iterator[asyncio.Event]:
        """An event that is set when this database's row, or one that belongs to it, may have changed. Clear it before
        reading the row: then no change is missed."""
        changed = asyncio.Event()
        key = str(database)
        self._waiters[key].add(changed)
        try:
            yield changed
        finally:
            self._waiters[key].discard(changed)
            if not self._waiters[key]:
                del self._waiters[key]

    async def wait_for(self, database: UUID, look: Callable[[], Awaitable[Seen | None]], timeout: float) -> Seen | None:
        """The first result of `look` that is not None; None after `timeout` seconds. Calls `look` immediately and
        after each notification."""
        with self.changes(database) as changed:
            try:
                async with asyncio.timeout(timeout):
                    while (seen := await look()) is None:
                        await changed.wait()
                        changed.clear()
                    return seen
            except TimeoutError:
                return None

    def _on_notice(self, database: str | None) -> None:
        """Wakes the waiters of this database; all waiters for None, when notifications may have been lost."""
        woken = chain(*self._waiters.values()) if database is None else self._waiters.get(database, ())
        for changed in woken:
            changed.set()
