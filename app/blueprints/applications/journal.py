"""What an attempt at an application writes down, so that the next one, and whoever asks, knows how far it came.

Every write names the attempt that makes it: a worker that was given up on, and works on all the same, writes nothing
more and stops at its next write.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

import asyncpg
import msgspec

from app.blueprints.applications.operation import note_begun, note_done, note_end, note_lost
from app.blueprints.applications.queue import start_next
from app.blueprints.applications.records import ApplicationRecord
from app.blueprints.applications.schemas import StatementStatus
from app.contracts.applications import ApplicationStatus
from app.core.clock import utc_now
from app.core.metrics.counters import APPLICATION_SECONDS
from app.databases import records as databases
from app.store.locks import LockLost
from app.store.notify import announce
from app.store.session import execute, fetch_all, fetch_value, transaction

_PATIENCE_SECONDS = 20.0
_RETRY_SECONDS = 0.5
_SHOWN_EVERY_SECONDS = 1.0
# The most that the column holds are 25 days. `least` alone would take that for one that never began, too.
_ENDED = (
    "status = $3, error_message = $4, completed_at = now(), values_sealed = NULL, session_reference = NULL,"
    " total_duration_ms = CASE WHEN started_at IS NOT NULL"
    " THEN least(round(1000 * extract(epoch FROM clock_timestamp() - started_at)), 2147483647) END"
)


class JournalEntry(msgspec.Struct, kw_only=True):
    """One statement of the script, and what became of it so far."""

    index: int
    line: int
    kind: str
    sql: str
    status: StatementStatus = StatementStatus.PENDING
    rows: int | None = None
    duration_ms: int | None = None
    error_code: str | None = None
    error_message: str | None = None
    note: str | None = None


async def claim(record: ApplicationRecord) -> int:
    """Claims the application for a new attempt, and returns its number. Raises `LockLost` when the application has
    ended."""
    attempt = await fetch_value(
        int,
        "UPDATE blueprint_applications SET attempt = attempt + 1 WHERE id = $1 AND completed_at IS NULL"
        " RETURNING attempt",
        record.id,
    )
    if attempt is None:
        raise LockLost("the application has ended meanwhile")
    return attempt


class Journal:
    """One attempt's writes."""

    def __init__(self, record: ApplicationRecord, attempt: int) -> None:
        self._record = record
        self._attempt = attempt
        self._done: set[int] = set()
        """The statements that have succeeded."""
        self._show_at = 0.0

    async def open(self, entries: list[JournalEntry]) -> None:
        """Marks the application as running, with every statement still to come."""
        async with transaction():
            total = sum(entry.status is StatementStatus.PENDING for entry in entries)
            await self._update(
                "status = 'running', started_at = coalesce(started_at, now()), statements_total = $3", total
            )
            await note_begun(self._record, total)
            await execute("DELETE FROM blueprint_statements WHERE application_id = $1", self._record.id)
            await execute(
                """
                INSERT INTO blueprint_statements (application_id, index, line, kind, sql, status, note)
                SELECT $1, n.index, n.line, n.kind, n.sql, n.status, n.note
                FROM unnest($2::int[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[])
                     AS n (index, line, kind, sql, status, note)
                """,
                self._record.id,
                [entry.index for entry in entries],
                [entry.line for entry in entries],
                [entry.kind for entry in entries],
                [entry.sql for entry in entries],
                [entry.status.value for entry in entries],
                [entry.note for entry in entries],
            )

    async def note_session(self, reference: str | None) -> None:
        """Notes the session that may change the database from now on."""
        await self._update("session_reference = $3", reference)

    async def note_loss(self) -> None:
        """Notes that a session was lost, and that nothing of it is left."""
        await self._update("session_reference = NULL, losses = losses + $3", 1)

    async def note_scratch(self, name: str | None) -> None:
        """Notes the throw-away copy that may be on the host from now on, or that it is gone."""
        await self._update("scratch_name = $3", name)

    async def note_left_scratch(self) -> None:
        """Notes that the copy of an attempt that didn't end is gone."""
        await self._update("scratch_name = NULL, losses = losses + $3", 1)

    async def write(self, entries: list[JournalEntry]) -> None:
        """Writes what became of these statements. Waits a while for our own database: what was done on the engine would
        be in doubt without it."""

        async def once() -> None:
            async with transaction():
                await self._check()
                await _write(self._record.id, entries)
                await self._show_progress(entries)

        await _patiently(once)

    async def end(self, status: ApplicationStatus, error: str | None, entries: list[JournalEntry]) -> None:
        """Ends the application: forgets its values, starts the next one, and notifies whoever waits. Waits as `write`
        does."""
        await _patiently(lambda: self._end(status, error, entries))
        took = utc_now() - self._record.created_at
        labels = (self._record.engine.value, self._record.region, status.value)
        APPLICATION_SECONDS.labels(*labels).observe(max(0, took.total_seconds()))

    async def _end(self, status: ApplicationStatus, error: str | None, entries: list[JournalEntry]) -> None:
        async with transaction():
            await databases.lock(self._record.database_id)
            await self._update(_ENDED, status.value, error)
            await _write(self._record.id, entries)
            await note_end(self._record, status)
            await start_next(self._record.database_id, relayed=True)
            await announce(self._record.database)

    async def end_with_host(self, error: str, entries: list[JournalEntry]) -> None:
        """Ends the application as failed, in the transaction that moves its database to another host, which has locked
        the database's row and also ends all applications that wait. The copy is left to the search for orphans, should
        the host come back."""
        await self._update(f"{_ENDED}, scratch_name = NULL", ApplicationStatus.FAILED.value, error)
        await _write(self._record.id, entries)
        await note_lost(self._record)
        await announce(self._record.database)

    async def _show_progress(self, entries: list[JournalEntry]) -> None:
        """Shows the progress on the operation, now and then: a script may have thousands of statements."""
        self._done |= {entry.index for entry in entries if entry.status is StatementStatus.SUCCEEDED}
        if time.monotonic() >= self._show_at:
            self._show_at = time.monotonic() + _SHOWN_EVERY_SECONDS
            await note_done(self._record, len(self._done))

    async def _check(self) -> None:
        await self._update("attempt = $3", self._attempt)

    async def _update(self, changes: str, *values: object) -> None:
        """Raises `LockLost` for an attempt that was superseded, or an application that has ended."""
        written = await execute(
            f"UPDATE blueprint_applications SET {changes}"  # noqa: S608 - our own words
            " WHERE id = $1 AND attempt = $2 AND completed_at IS NULL",
            self._record.id,
            self._attempt,
            *values,
        )
        if not written:
            raise LockLost("another attempt at this application has begun")


async def _patiently(write: Callable[[], Awaitable[None]]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return await write()
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(_RETRY_SECONDS)


async def _write(application: int, entries: list[JournalEntry]) -> None:
    await execute(
        """
        UPDATE blueprint_statements s SET status = n.status, rows = n.rows, duration_ms = n.duration_ms,
               error_code = n.error_code, error_message = n.error_message, note = n.note
        FROM unnest($2::int[], $3::text[], $4::bigint[], $5::int[], $6::text[], $7::text[], $8::text[])
             AS n (index, status, rows, duration_ms, error_code, error_message, note)
        WHERE s.application_id = $1 AND s.index = n.index
        """,
        application,
        [entry.index for entry in entries],
        [entry.status.value for entry in entries],
        [entry.rows for entry in entries],
        [entry.duration_ms for entry in entries],
        [entry.error_code for entry in entries],
        [entry.error_message for entry in entries],
        [entry.note for entry in entries],
    )


async def entries_of(application: int) -> list[JournalEntry]:
    """The application's entries, as an earlier attempt left them."""
    return await fetch_all(
        JournalEntry,
        "SELECT index, line, kind, sql, status, rows, duration_ms, error_code, error_message, note"
        " FROM blueprint_statements WHERE application_id = $1 ORDER BY index",
        application,
    )
