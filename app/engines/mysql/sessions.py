"""Finding a tenant's sessions, and ending them reliably."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import structlog

from app.engines.base import EngineError
from app.engines.mysql import branches
from app.engines.mysql.accounts import dump_helpers
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.connections import MySQLConnections
from app.engines.mysql.errors import NO_SUCH_THREAD, ignored
from app.engines.mysql.transactions import TransactionsNotListed
from app.engines.naming import HELPER_SEPARATOR
from app.engines.querying import READER_PURPOSE

END_SECONDS = 20
ARRIVAL_SECONDS = 5.0
"""How long a login may take before it is ended together with the sessions of an account that it may belong to."""
_POLL_SECONDS = 0.02
QUESTION_MARK = "/* headwater question */"
"""A comment before statements that a question runs with the tenant's own account, so that they can be distinguished
from the tenant's."""
_READER_SUFFIX = HELPER_SEPARATOR + READER_PURPOSE
LOGGING_IN = "command IN ('Connect', 'Change user')"
"""The condition for rows of the process list whose login is under way. Such a row is nobody's session yet: MariaDB
shows whatever name the client gave, before it has proven anything, and a session may change to another account for as
long as its client likes."""
_SHOWN = """
SELECT id, user, theirs FROM (
    SELECT id, user, command, user = %s OR %s AND LEFT(user, %s) = %s AS theirs FROM information_schema.processlist
) p WHERE theirs OR user = 'unauthenticated user' OR command = 'Change user'
"""
_COUNTED = f"""
SELECT user, COUNT(*) FROM information_schema.processlist
WHERE (user = %s OR LEFT(user, %s) = %s) AND NOT {LOGGING_IN} GROUP BY 1
"""  # noqa: S608  constants
_OVERDUE = """
SELECT id FROM information_schema.processlist
WHERE command <> 'Sleep' AND time > %s AND (RIGHT(user, %s) = %s OR LEFT(info, %s) = %s)
"""


log = structlog.get_logger(__name__)


async def end_sessions(
    connection: MySQLConnection, connections: MySQLConnections, name: str, *, helpers: bool = True
) -> set[int]:
    """Ends all sessions of the account and, with `helpers`, of a tenant's other accounts but those of dumps, and the
    branches known to be theirs, after the accounts were locked. Returns InnoDB's ids of their open transactions, as far
    as the server lists them. Raises `EngineError` after `END_SECONDS`."""
    transactions: set[int] = set()
    prepared: list[str] = []
    listed = True

    async def note(sessions: list[int]) -> None:
        nonlocal listed, prepared, transactions
        prepared += await branches.branches_of_sessions(connection, sessions)
        try:
            transactions |= await branches.transactions_of_sessions(connections, sessions) if listed else set()
        except TransactionsNotListed as error:
            # Another tenant may have so many: no reason to let this one go on.
            listed = False
            log.warning("transactions_not_listed", tenant=name, reason=str(error))

    async def look() -> _Shown:
        return await _shown(connection, name, helpers, dumps=False)

    await _end(connection, name, look, note, logging_in=True)
    await branches.roll_back(connection, prepared)
    return transactions


async def end_present_sessions(
    connection: MySQLConnection,
    name: str,
    *,
    helpers: bool = True,
    dumps: bool = True,
    logging_in: bool = False,
    keep: int | None = None,
) -> None:
    """Ends the sessions that the account and, with `helpers`, a tenant's other accounts have open now, with `dumps`
    also those of dumps, but not the session `keep`; new ones may follow. With `logging_in` also ends those whose login
    has begun, perhaps with a password that is not valid any more. Raises `EngineError` after `END_SECONDS`."""

    async def look() -> _Shown:
        shown = await _shown(connection, name, helpers, dumps=dumps)
        return shown._replace(theirs=shown.theirs - {keep})

    await _end(connection, name, look, logging_in=logging_in)


class _Shown(NamedTuple):
    """The numbers of sessions that the server shows."""

    theirs: set[int]
    unknown: set[int]
    """Those whose login is under way: they may be anybody's."""


async def _end(
    connection: MySQLConnection,
    name: str,
    look: Callable[[], Awaitable[_Shown]],
    note: Callable[[list[int]], Awaitable[None]] | None = None,
    *,
    logging_in: bool,
) -> None:
    """Ends what the first look shows; `note` gets the tenant's sessions first. A login that begins later finds the
    account as it is now, and clients may try for ever.

    A login reads the account when it begins, and is let in by what it has read then, however long its client takes;
    MySQL shows whose it is only at its end. One that was ended by then runs no statement any more, so it isn't waited
    for: while the server looks up the name of its client's address, nothing stops it.
    """
    began = time.monotonic()
    theirs, unknown = await look()
    left = theirs | unknown if logging_in else theirs
    while left:
        late = time.monotonic() - began > ARRIVAL_SECONDS
        if note is not None:
            await note(sorted(left & theirs))
        await _kill(connection, sorted(left & (theirs | unknown if late else theirs)))
        if time.monotonic() - began > END_SECONDS:
            raise EngineError(f"sessions of {name} don't end")
        await asyncio.sleep(_POLL_SECONDS)
        theirs, unknown = await look()
        left &= theirs if late else theirs | unknown


async def end_session(connection: MySQLConnection, account: str, number: int) -> None:
    """Ends the session of this number if it is still the account's: a server that was started anew gives the same
    numbers to others."""
    rows = await connection.run(
        "SELECT id FROM information_schema.processlist WHERE id = %s AND user = %s", (number, account)
    )
    await _kill(connection, [int(found) for (found,) in rows])


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
    rows = await connection.run(_COUNTED, (name, len(name) + 1, name + HELPER_SEPARATOR))
    return {str(user): int(count) for user, count in rows}


async def _shown(connection: MySQLConnection, name: str, helpers: bool, *, dumps: bool) -> _Shown:
    rows = await connection.run(_SHOWN, (name, helpers, len(name) + 1, name + HELPER_SEPARATOR))
    kept = set() if dumps else dump_helpers(name)
    return _Shown(
        theirs={int(number) for number, user, theirs in rows if theirs and user not in kept},
        unknown={int(number) for number, _, theirs in rows if not theirs},
    )
