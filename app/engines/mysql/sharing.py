"""What all tenants of a MySQL or MariaDB server share: prepared statements, memory, and the undo log, which is purged
only up to the oldest open transaction.

None of these can be limited for an account.
"""

import asyncio
from collections.abc import Sequence

from app.engines.base import SessionLimits, SessionsEnded, SharedResource
from app.engines.dumping import DumpPurpose
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.errors import NO_PRIVILEGE_ON_TABLE, NO_SUCH_COLUMN, NO_SUCH_THREAD, ignored
from app.engines.naming import HELPER_SEPARATOR

_MAX = 50
"""How often at most one pass looks for a session to end because of its prepared statements."""
_SETTLE_SECONDS = 0.05
"""The time after which an ended session has released what it held."""
# A backup has a time limit of its own, by the size of its database, and runs nothing of the tenant's.
_IS_LONG = "(TIMESTAMPDIFF(SECOND, t.trx_started, NOW()) >= %s AND SUBSTRING_INDEX(p.user, %s, -1) <> %s)"
_TRANSACTIONS = f"""
SELECT p.id, SUBSTRING_INDEX(p.user, '_', 1), IF({_IS_LONG}, 'long_transaction', 'idle_transaction')
FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
WHERE SUBSTRING_INDEX(p.user, '_', 1) IN %s
  AND ({_IS_LONG} OR p.command = 'Sleep' AND p.time >= %s)
ORDER BY t.trx_started LIMIT 100
"""  # noqa: S608  constants
_HISTORY = "SELECT count FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len'"
# A prepared branch whose session has ended has no known owner.
_DETACHED = """
SELECT COUNT(*), COALESCE(SUM(TIMESTAMPDIFF(SECOND, trx_started, NOW()) >= %s), 0)
FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = 0
"""
DETACHED_SECONDS = 3600
"""The age at which a prepared branch without a session is reported: by then nobody is about to commit it."""


async def end_excessive_sessions(
    connection: MySQLConnection, names: Sequence[str], limits: SessionLimits
) -> list[SessionsEnded]:
    is_long = (limits.transaction_seconds, HELPER_SEPARATOR, DumpPurpose.BACKUP.value)
    found = [
        (int(number), str(tenant), str(reason))
        for number, tenant, reason in await connection.run(
            _TRANSACTIONS, (*is_long, [*names], *is_long, limits.idle_transaction_seconds)
        )
    ]
    found += [(number, tenant, "memory") for number, tenant in await _memory(connection, names, limits.memory_bytes)]
    unique = {number: (tenant, reason) for number, tenant, reason in reversed(found)}
    ended = []
    for number, (tenant, reason) in unique.items():
        await _kill(connection, number)
        ended.append(SessionsEnded(tenant=tenant, reason=reason))
    return ended + await _free_statements(connection, names, limits.shared_percent)


async def resources(connection: MySQLConnection) -> list[SharedResource]:
    used, capacity = await _statements(connection)
    [(history,)] = await connection.run(_HISTORY)
    [(detached, left)] = await connection.run(_DETACHED, (DETACHED_SECONDS,))
    return [
        SharedResource(name="prepared_statements", used=used, capacity=capacity),
        SharedResource(name="undo_history", used=float(history), capacity=None),
        SharedResource(
            name="detached_transactions",
            used=float(detached),
            capacity=None,
            concern=f"{left} prepared XA branches were left without a session, and hold rows: XA RECOVER lists them"
            if left
            else None,
        ),
    ]


async def _memory(connection: MySQLConnection, names: Sequence[str], most: int) -> list[tuple[int, str]]:
    """The sessions that use more than `most` bytes of memory, of their own or by their named locks, and their
    tenants."""
    flavour, rows = connection.flavour, []
    with ignored(NO_SUCH_COLUMN):  # of a server that doesn't count that yet
        rows += await connection.run(flavour.session_memory, ([*names], most))
    if flavour.named_locks is not None:
        with ignored(NO_PRIVILEGE_ON_TABLE):  # of a host added before it was asked for
            rows += await connection.run(flavour.named_locks, ([*names], most))
    return [(int(number), str(tenant)) for number, tenant, _ in rows]


async def _free_statements(connection: MySQLConnection, names: Sequence[str], percent: int) -> list[SessionsEnded]:
    """Ends one session after the other, until there is room again."""
    ended: dict[int, SessionsEnded] = {}
    for _ in range(_MAX):
        if await _have_room(connection, percent):
            break
        rows = await connection.run(connection.flavour.prepared_statements, ([*names],))
        # Again, after the choice: if the one that was ended last is gone by then, so are its statements.
        if not rows or await _have_room(connection, percent):
            break
        [(number, tenant)] = rows
        if int(number) not in ended:
            await _kill(connection, int(number))
            ended[int(number)] = SessionsEnded(tenant=str(tenant), reason="prepared_statements")
        await asyncio.sleep(_SETTLE_SECONDS)
    return [*ended.values()]


async def _have_room(connection: MySQLConnection, percent: int) -> bool:
    used, capacity = await _statements(connection)
    return used * 100 < capacity * percent


async def _statements(connection: MySQLConnection) -> tuple[int, int]:
    """The number of prepared statements on the server, and its limit."""
    [(_, used)] = await connection.run("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'")
    [(capacity,)] = await connection.run("SELECT @@global.max_prepared_stmt_count")
    return int(used), int(capacity)


async def _kill(connection: MySQLConnection, number: int) -> None:
    with ignored(NO_SUCH_THREAD):
        await connection.run(f"KILL {number:d}")
