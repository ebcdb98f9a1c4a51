"""A script on MySQL, which commits DDL immediately: it can't be rolled back."""

import asyncio
import contextlib
import re
import secrets
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pymysql

from app.engines.errors import EngineError, HostUnavailable, StatementFailed, StatementUncertain
from app.engines.mysql import branches
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.errors import NO_SUCH_THREAD, ignored
from app.engines.mysql.reading import REREADING_MODES, SessionState, state_of
from app.engines.scripts import ScriptEnd, ScriptSession

LOCK_SECONDS = 10
END_SECONDS = 20
POLL_SECONDS = 0.05

_LOST = {
    0,  # the driver found its connection closed
    1053,  # shutting down
    1927,  # killed (MariaDB)
    2006,  # the connection is gone
    2013,  # lost during a statement
    4031,  # disconnected by the server
}


def _mode() -> str:
    """The server's own mode, without what changes how statements are read: scripts are judged, and variables quoted,
    in this mode."""
    expression = "@@sql_mode"
    for mode in REREADING_MODES:
        expression = f"REPLACE({expression}, '{mode}', '')"
    return f"sql_mode = {expression}"


_WANTS_DATA = {
    1329,  # a cursor without rows
    1452,  # no row to refer to
    1644,  # a routine's own refusal
}
_NULL = 1048
"""NULL in a column that forbids it. In a statement that looks up values, the value may be missing."""
_LOOKS_UP = re.compile(r"\bSELECT\b|@", re.IGNORECASE)


class MySQLScript(ScriptSession):
    """`connection` is the tenant's; `admin` opens one of the administrator."""

    def __init__(
        self, connection: MySQLConnection, admin: Callable[[], AbstractAsyncContextManager[MySQLConnection]]
    ) -> None:
        self._connection = connection
        self._admin = admin
        self._lock_name = secrets.token_hex(16)
        self._state: SessionState | None = None

    async def begin(self) -> str:
        """Takes a lock that lives as long as the session: whoever can take it knows that the session is over."""
        await self._answered(
            f"SET SESSION lock_wait_timeout = {LOCK_SECONDS:d}, innodb_lock_wait_timeout = {LOCK_SECONDS:d}, {_mode()}",
            END_SECONDS,
        )
        await self._answered(f"SELECT GET_LOCK('{self._lock_name}', 0)", END_SECONDS)
        await self._check_session()
        return self._lock_name

    async def run(self, statement: str, seconds: float) -> int | None:
        """The server accepts one statement at a time, because the driver doesn't enable more."""
        if self._state is not None and not self._state.reads(statement):
            raise StatementFailed(
                f"it holds other characters than ASCII, and character_set_client is {self._state.character_set} here"
            )
        try:
            return await self._answered(statement, seconds)
        finally:
            # A procedure that fails may leave as much behind as one that succeeds.
            if self._connection.usable:
                await self._check_session()

    async def _check_session(self) -> None:
        """Checks that what was run is permanent, and that the server will read the next statement as it was judged."""
        try:
            async with asyncio.timeout(END_SECONDS):
                self._state = await state_of(self._connection, self._lock_name)
        except TimeoutError as error:
            self._connection.close()
            raise StatementUncertain("the server no longer answers") from error
        except pymysql.MySQLError as error:
            refusal = self._refusal(error, "")
            if isinstance(refusal, StatementFailed):
                raise StatementUncertain(f"the statement left a session that can't be used: {refusal}") from error
            raise refusal from error
        except (OSError, RuntimeError) as error:
            raise HostUnavailable("the session was lost") from error
        if self._state.prepared_branches:
            await self._roll_back_branches()
        self._state.check_lasting()
        if reason := self._state.misread():
            raise StatementFailed(reason)

    async def _roll_back_branches(self) -> None:
        """Rolls back the branches that the session has prepared: they would lock their tables for ever. While the
        session exists, MySQL shows its last branch; others are removed with the database."""
        with contextlib.suppress(EngineError):
            async with self._admin() as connection:
                found = await branches.branches_of_sessions(connection, [self._connection.thread_id()])
                await branches.roll_back(connection, found)

    async def _answered(self, statement: str, seconds: float) -> int | None:
        try:
            async with asyncio.timeout(seconds):
                return await self._connection.discard(statement)
        except TimeoutError as error:
            self._connection.close()
            raise StatementUncertain(f"the statement took longer than {seconds:.0f} s and was stopped") from error
        except pymysql.MySQLError as error:
            raise self._refusal(error, statement) from error
        except (OSError, RuntimeError) as error:
            raise HostUnavailable("the session was lost") from error

    async def commit(self) -> None:
        """Does nothing: each statement was permanent already, or the script was stopped there."""

    async def roll_back(self, *, checked: bool) -> None:
        raise NotImplementedError

    def _refusal(self, error: pymysql.MySQLError, statement: str) -> EngineError:
        number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        if number in _LOST or not self._connection.usable:
            return HostUnavailable("the session was lost", code=str(number) if number else None)
        message = str(error.args[1]) if len(error.args) > 1 else str(number)
        return StatementFailed(message, code=str(number), wants_data=_wants_data(number, statement))


def _wants_data(number: int, statement: str) -> bool:
    return number in _WANTS_DATA or (number == _NULL and _LOOKS_UP.search(statement) is not None)


async def end_script(connection: MySQLConnection, lock_name: str) -> ScriptEnd:
    """Ends the session that holds the lock, if it still exists. Raises `EngineError` when it doesn't end."""
    deadline = time.monotonic() + END_SECONDS
    while True:
        [(thread,)] = await connection.run("SELECT IS_USED_LOCK(%s)", (lock_name,))
        if thread is None:
            return ScriptEnd.UNKNOWN
        with ignored(NO_SUCH_THREAD):
            await connection.run(f"KILL {int(thread):d}")
        if time.monotonic() > deadline:
            raise EngineError("the session of an earlier attempt doesn't end")
        await asyncio.sleep(POLL_SECONDS)
