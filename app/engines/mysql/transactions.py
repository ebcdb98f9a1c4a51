"""InnoDB's current open transactions. The server answers from a copy, which it renews only when nobody has read it
for a tenth of a second."""

import asyncio
import random
import time

from app.engines.base import EngineError
from app.engines.mysql.connections import MySQLConnections

_OPEN = "SELECT trx_id, trx_mysql_thread_id FROM information_schema.innodb_trx"
_RENEWED_SECONDS = 0.1
_GIVE_UP_SECONDS = 10
DETACHED = 0
"""The session id of a prepared transaction whose own session has ended."""


class TransactionsNotListed(EngineError):
    """The server's list of transactions is old, or lacks some of them."""


async def open_transactions(connections: MySQLConnections) -> list[tuple[int, int]]:
    """All open transactions, as (InnoDB's id, session id). Raises `TransactionsNotListed` when others read so often
    that the copy isn't renewed, or when there are more than the server lists."""
    # One reader at a time: readers of one process would keep each other's copy from being renewed.
    async with connections.reading_transactions, connections.extra() as witness:
        # A list with this session's transaction in it was made after this statement: no session had its id before.
        await witness.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        deadline = time.monotonic() + _GIVE_UP_SECONDS
        while True:
            found = [(int(transaction), int(session)) for transaction, session in await witness.run(_OPEN)]
            if any(session == witness.thread_id() for _, session in found):
                return found
            if time.monotonic() > deadline:
                raise TransactionsNotListed(
                    f"the list of open transactions of {connections.host} isn't renewed, because too many read it, or "
                    "has no room for all"
                )
            await asyncio.sleep(_RENEWED_SECONDS * random.uniform(1.1, 2))  # noqa: S311
