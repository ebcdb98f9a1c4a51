"""A script on MySQL, which commits DDL as it goes: nothing of it can be taken back."""

import asyncio
import re
import secrets
import time
from typing import Any

import aiomysql
import pymysql

from app.engines.errors import EngineError, HostUnavailable, StatementFailed, StatementUncertain
from app.engines.mysql.connections import Connection
from app.engines.mysql.errors import NO_SUCH_THREAD, ignored
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
# Variables are quoted for this reading of quotes and backslashes.
_MODE = "sql_mode = REPLACE(REPLACE(@@sql_mode, 'ANSI_QUOTES', ''), 'NO_BACKSLASH_ESCAPES', '')"
_WANTS_DATA = {
    1329,  # a cursor without rows
    1452,  # no row to refer to
    1644,  # a routine's own refusal
}
_NULL = 1048
"""Where a column takes none. In a statement that looks something up, what it looks for may be missing."""
_LOOKS_UP = re.compile(r"\bSELECT\b|@", re.IGNORECASE)
_FETCHED_AT_ONCE = 1000


class _Rows(aiomysql.SSCursor):  # type: ignore[misc]  # the driver is untyped
    """Throws rows away as they come: a script may select more than fits."""

    async def _show_warnings(self, conn: Any) -> None:
        """The driver would print them, and they may quote what is in a statement."""


class MySQLScript(ScriptSession):
    """`connection` is the tenant's."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def begin(self) -> str:
        """A lock that lives as long as the session: whoever finds it free knows that the session is over."""
        name = secrets.token_hex(16)
        await self.run(
            f"SET SESSION lock_wait_timeout = {LOCK_SECONDS:d}, innodb_lock_wait_timeout = {LOCK_SECONDS:d}, {_MODE}",
            END_SECONDS,
        )
        await self.run(f"SELECT GET_LOCK('{name}', 0)", END_SECONDS)
        return name

    async def run(self, statement: str, seconds: float) -> int | None:
        try:
            async with asyncio.timeout(seconds):
                return await self._run(statement)
        except TimeoutError as error:
            self._connection.close()
            raise StatementUncertain(f"the statement took longer than {seconds:.0f} s and was stopped") from error
        except pymysql.MySQLError as error:
            raise self._refusal(error, statement) from error
        except (OSError, RuntimeError) as error:
            raise HostUnavailable("the session was lost") from error

    async def commit(self) -> None:
        """For a script that has switched to transactions of its own."""
        await self.run("COMMIT", END_SECONDS)

    async def roll_back(self, *, checked: bool) -> None:
        raise NotImplementedError

    async def _run(self, statement: str) -> int | None:
        async with self._connection.cursor(_Rows) as cursor:
            await cursor.execute(statement)
            if cursor.description is None:
                changed: int = cursor.rowcount
                return changed
            rows = 0
            while found := await cursor.fetchmany(_FETCHED_AT_ONCE):
                rows += len(found)
            while await cursor.nextset():
                while await cursor.fetchmany(_FETCHED_AT_ONCE):
                    pass
            return rows

    def _refusal(self, error: pymysql.MySQLError, statement: str) -> EngineError:
        number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        if number in _LOST or not self._connection.usable:
            return HostUnavailable("the session was lost", code=str(number) if number else None)
        message = str(error.args[1]) if len(error.args) > 1 else str(number)
        return StatementFailed(message, code=str(number), wants_data=_wants_data(number, statement))


def _wants_data(number: int, statement: str) -> bool:
    return number in _WANTS_DATA or (number == _NULL and _LOOKS_UP.search(statement) is not None)


async def end_script(connection: Connection, lock_name: str) -> ScriptEnd:
    """Ends the session that holds the lock, if it is still there. Raises `EngineError` when it doesn't end."""
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
