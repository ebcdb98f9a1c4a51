"""A script as one transaction of the tenant."""

import asyncio
import contextlib
import re
import time
from collections.abc import Iterator
from typing import Any

import asyncpg

from app.engines.errors import EngineError, HostUnavailable, StatementFailed, StatementUncertain
from app.engines.postgres.reading import READING, check_open, check_reading
from app.engines.postgres.wire import metered, too_large
from app.engines.scripts import ScriptEnd, ScriptSession

LOCK_SECONDS = 10
END_SECONDS = 20
CLOSE_SECONDS = 1
POLL_SECONDS = 0.05
_MAX_OCTETS = 16 * 1024 * 1024
"""The maximum of a response without rows: an error may quote the statements of all functions around it."""

_SETTINGS = {
    # Every tenant sees it in pg_stat_activity.
    "application_name": "headwater",
    # Variables are quoted for this setting.
    **READING,
    "lock_timeout": f"{LOCK_SECONDS}s",
    "idle_in_transaction_session_timeout": "60s",
}
_QUERY_CANCELED = "57014"
_INVALID_PARAMETER = "22023"
_COUNTED = re.compile(r"(?:INSERT \d+|[A-Z]+) (\d+)")
# All names are qualified: a script may set its own search path.
_BEGIN = "SELECT pg_catalog.pg_current_xact_id()::text, pg_catalog.pg_logical_emit_message(true, 'headwater', '')"
_FLUSH = """
SELECT pg_catalog.set_config('synchronous_commit', 'on', true),
       pg_catalog.pg_logical_emit_message(true, 'headwater', '')
"""
_TERMINATE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xid = $1::text::xid8::xid"


def session_settings(seconds: float) -> dict[str, str]:
    """The settings of a script's session, which the script may change."""
    return {**_SETTINGS, "statement_timeout": f"{seconds:.0f}s"}


class PostgresScript(ScriptSession):
    """`connection` is the tenant's; `admin` opens one of the administrator."""

    def __init__(self, connection: Any, admin: Any) -> None:
        self._connection = connection
        self._admin = admin
        self._transaction = ""
        self._meter = metered(connection)
        self._meter.begin(_MAX_OCTETS)
        self._meter.discard_rows(discarding=False)

    async def begin(self) -> str:
        check_reading(self._connection)
        await self._connection.execute("BEGIN")
        row = await self._connection.fetchrow(_BEGIN)
        self._transaction = row[0]
        # A transaction id that is not in the log on disk may be reused after a crash of the server, and then another's
        # commit would be found. Any commit writes the log up to its own position, and so ours.
        async with self._admin() as connection:
            await connection.execute(_FLUSH)
        return self._transaction

    async def run(self, statement: str, seconds: float) -> int | None:
        check_reading(self._connection)
        if ";" in statement:
            await self._check_single(statement, seconds)
        counted = _COUNTED.fullmatch(await self._execute(statement, seconds))
        check_open(self._connection)
        check_reading(self._connection)
        return int(counted[1]) if counted else None

    async def commit(self) -> None:
        await self._check_transaction()
        await self._execute("COMMIT", END_SECONDS)

    async def _check_single(self, statement: str, seconds: float) -> None:
        """Lets the server check that it is one statement: it prepares no more than one. The driver's own way to run
        a statement without parameters accepts any number."""
        with self._translated(seconds):
            # The driver's public way to prepare would look up unknown types with queries of its own.
            await self._connection._protocol.prepare("", statement, seconds, record_class=asyncpg.Record)

    async def roll_back(self, *, checked: bool) -> None:
        if checked:
            await self._execute("SET CONSTRAINTS ALL IMMEDIATE", END_SECONDS)
            await self._check_transaction()
        await self._execute("ROLLBACK", END_SECONDS)

    async def _check_transaction(self) -> None:
        """Checks that nothing in the script ended the transaction and began another."""
        row = await self._connection.fetchrow("SELECT pg_catalog.pg_current_xact_id_if_assigned()::text")
        if row[0] != self._transaction:
            raise StatementUncertain("the script ended the transaction that it runs in")

    async def _execute(self, statement: str, seconds: float) -> str:
        # The driver would read a row of a gigabyte completely before discarding it.
        self._meter.discard_rows(discarding=True)
        try:
            return await self._run(statement, seconds)
        finally:
            self._meter.discard_rows(discarding=False)

    async def _run(self, statement: str, seconds: float) -> str:
        with self._translated(seconds):
            status: str = await self._connection.execute(statement, timeout=seconds)
        return status

    @contextlib.contextmanager
    def _translated(self, seconds: float) -> Iterator[None]:
        try:
            yield
        except asyncpg.PostgresError as error:
            raise self._refusal(error) from error
        except TimeoutError as error:
            raise StatementFailed(f"the statement took longer than {seconds:.0f} s", code=_QUERY_CANCELED) from error
        except (OSError, asyncpg.InterfaceError) as error:
            raise HostUnavailable("the session was lost") from error

    def _refusal(self, error: asyncpg.PostgresError) -> EngineError:
        cut = too_large(error)
        if cut is not None:
            return StatementFailed(str(cut))
        code: str | None = getattr(error, "sqlstate", None)
        lost = isinstance(error, asyncpg.PostgresConnectionError) or (code or "").startswith("57P")
        if lost or self._connection.is_closed():
            return HostUnavailable("the session was lost", code=code)
        position = getattr(error, "position", None)
        return StatementFailed(
            str(error.args[0]) if error.args else type(error).__name__,
            code=code,
            position=int(position) - 1 if position else None,
        )


async def close(connection: Any) -> None:
    """Closes the connection without waiting for a server that doesn't answer."""
    with contextlib.suppress(OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        await connection.close(timeout=CLOSE_SECONDS)


async def end_script(connection: Any, transaction: str) -> ScriptEnd:
    """Ends the transaction's session if it still exists, and returns the script's outcome. Raises `EngineError` when
    it doesn't end."""
    deadline = time.monotonic() + END_SECONDS
    while True:
        try:
            status = await connection.fetchval("SELECT pg_xact_status($1::text::xid8)", transaction)
        except asyncpg.PostgresError as error:
            if getattr(error, "sqlstate", None) == _INVALID_PARAMETER:  # a number that the server never gave out
                return ScriptEnd.UNDONE
            raise
        if status != "in progress":
            return {"committed": ScriptEnd.COMMITTED, "aborted": ScriptEnd.UNDONE}.get(status, ScriptEnd.UNKNOWN)
        await connection.execute(_TERMINATE, transaction)
        if time.monotonic() > deadline:
            raise EngineError("the session of an earlier attempt doesn't end")
        await asyncio.sleep(POLL_SECONDS)
