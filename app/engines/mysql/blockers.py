"""Ending sessions of a tenant that block an administrator's statement. PostgreSQL shows who is waited for; here the
statement times out after a short wait, and all sessions of the tenant are taken to block it."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import pymysql
import structlog

from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.errors import LOCK_WAIT_TIMEOUT
from app.engines.mysql.sessions import end_present_sessions

Done = TypeVar("Done")
_MAX_TIMES = 3
"""A tenant that reconnects immediately and locks again is ended again."""

log = structlog.get_logger(__name__)


async def ending_blockers(connection: MySQLConnection, name: str, statement: Callable[[], Awaitable[Done]]) -> Done:
    """Runs the statement on `connection`. If it waits for a lock in vain, ends the tenant's sessions and tries
    again. Raises the last attempt's error."""
    for _ in range(_MAX_TIMES):
        try:
            return await statement()
        except pymysql.MySQLError as error:
            if error.args[:1] != (LOCK_WAIT_TIMEOUT,):
                raise
        await end_present_sessions(connection, name)
        log.info("blocking_sessions_ended", tenant=name)
    return await statement()
