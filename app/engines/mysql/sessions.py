"""Finding a tenant's sessions, and ending them reliably."""

import asyncio
import time

from app.engines.base import EngineError
from app.engines.mysql import branches
from app.engines.mysql.accounts import dump_helpers
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.connections import MySQLConnections
from app.engines.mysql.errors import NO_SUCH_THREAD, ignored
from app.engines.naming import HELPER_SEPARATOR
from app.engines.querying import READER_PURPOSE

END_SECONDS = 20
SETTLE_SECONDS = 0.05
"""A login appears among the sessions a moment after its account was checked, so none counts as open only if none was
seen twice, this far apart."""
QUESTION_MARK = "/* headwater question */"
"""A comment before statements that a question runs with the tenant's own account, so that they can be distinguished
from the tenant's."""
_READER_SUFFIX = HELPER_SEPARATOR + READER_PURPOSE
_OVERDUE = """
SELECT id FROM information_schema.processlist
WHERE command <> 'Sleep' AND time > %s AND (RIGHT(user, %s) = %s OR LEFT(info, %s) = %s)
"""


async def end_sessions(
    connection: MySQLConnection, connections: MySQLConnections, name: str, *, helpers: bool = True
) -> set[int]:
    """Ends all sessions of the account and, with `helpers`, of a tenant's other accounts but those of dumps, and the
    branches known to be theirs, after the accounts were locked. Returns InnoDB's ids of their open transactions. Raises
    `EngineError` after `END_SECONDS`.

    A login that the lock refuses is shown for a moment too. Clients may try for ever, so those that began later than
    this are not waited for."""
    deadline = time.monotonic() + END_SECONDS
    newest = await _newest_session(connection)
    present: set[int] | None = None
    transactions: set[int] = set()
    prepared: list[str] = []
    empty_polls = 0
    while empty_polls < 2:
        found = await _sessions(connection, name, helpers, dumps=False)
        present = set(found) if present is None else present
        # Not by the number alone: small ones follow the server's last, 2^32 - 1.
        sessions = [number for number in found if number <= newest or number in present]
        transactions |= await branches.transactions_of_sessions(connections, sessions)
        prepared += await branches.branches_of_sessions(connection, sessions)
        await _kill(connection, sessions)
        empty_polls = 0 if sessions else empty_polls + 1
        if time.monotonic() > deadline:
            raise EngineError(f"sessions of {name} don't end")
        await asyncio.sleep(SETTLE_SECONDS if empty_polls else 0.01)
    await branches.roll_back(connection, prepared)
    return transactions


async def _newest_session(connection: MySQLConnection) -> int:
    """The number of the server's newest session, or the next one's: it numbers each attempt to connect."""
    [(_, attempts)] = await connection.run("SHOW GLOBAL STATUS LIKE 'Connections'")
    return int(attempts)


async def end_present_sessions(
    connection: MySQLConnection, name: str, *, helpers: bool = True, dumps: bool = True, keep: int | None = None
) -> None:
    """Ends the sessions that the account and, with `helpers`, a tenant's other accounts have open now or are just
    opening, those of `dumps` too, all but `keep`; new ones may follow. Raises `EngineError` after `END_SECONDS`."""

    async def others() -> list[int]:
        return [number for number in await _sessions(connection, name, helpers, dumps=dumps) if number != keep]

    present = set(await _kill(connection, await others()))
    await asyncio.sleep(SETTLE_SECONDS)
    present |= set(await _kill(connection, await others()))
    deadline = time.monotonic() + END_SECONDS
    while present & set(await others()):
        if time.monotonic() > deadline:
            raise EngineError(f"sessions of {name} don't end")
        await asyncio.sleep(0.01)


async def end_overdue(connection: MySQLConnection, seconds: float) -> int:
    """Ends sessions in which a statement of a question has run longer than `seconds`. Returns how many."""
    rows = await connection.run(
        _OVERDUE, (seconds, len(_READER_SUFFIX), _READER_SUFFIX, len(QUESTION_MARK), QUESTION_MARK)
    )
    return len(await _kill(connection, [int(number) for (number,) in rows]))


async def _kill(connection: MySQLConnection, sessions: list[int]) -> list[int]:
    for number in sessions:
        with ignored(NO_SUCH_THREAD):
            await connection.run(f"KILL {number:d}")
    return sessions


async def count_sessions(connection: MySQLConnection, name: str) -> dict[str, int]:
    """How many sessions each account of the tenant has open."""
    rows = await connection.run(
        "SELECT user, COUNT(*) FROM information_schema.processlist WHERE user = %s OR LEFT(user, %s) = %s GROUP BY 1",
        (name, len(name) + 1, name + HELPER_SEPARATOR),
    )
    return {str(user): int(count) for user, count in rows}


async def _sessions(connection: MySQLConnection, name: str, helpers: bool, *, dumps: bool = True) -> list[int]:
    rows = await connection.run(
        "SELECT id, user FROM information_schema.processlist WHERE user = %s OR %s AND LEFT(user, %s) = %s",
        (name, helpers, len(name) + 1, name + HELPER_SEPARATOR),
    )
    kept = set() if dumps else dump_helpers(name)
    return [int(number) for number, user in rows if user not in kept]
