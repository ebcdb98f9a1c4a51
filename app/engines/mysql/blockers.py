"""Tenants' sessions that hold up what the administrator does: the same as on PostgreSQL, where waiting shows who it is
that one waits for. Here a statement gives up after a short wait, and every session of the tenant's counts as in its
way."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import pymysql
import structlog

from app.engines.mysql.connections import MySQLConnection
from app.engines.mysql.errors import LOCK_WAIT_TIMEOUT
from app.engines.mysql.sessions import end_present_sessions

Done = TypeVar("Done")
_MAX_TIMES = 3
"""A tenant that is back at once, and holds what it held, is ended again."""

log = structlog.get_logger(__name__)


async def ending_blockers(connection: MySQLConnection, name: str, statement: Callable[[], Awaitable[Done]]) -> Done:
    """Runs the statement on `connection`; where it waits for a lock in vain, ends the tenant's sessions and runs it
    again. Raises what the last try raised."""
    for _ in range(_MAX_TIMES):
        try:
            return await statement()
        except pymysql.MySQLError as error:
            if error.args[:1] != (LOCK_WAIT_TIMEOUT,):
                raise
        await end_present_sessions(connection, name)
        log.info("blocking_sessions_ended", tenant=name)
    return await statement()
