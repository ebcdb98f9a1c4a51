"""Prepared XA branches: they outlive their session and lock a tenant's tables, and nothing names their owner.

Any administrator may roll back any branch whose id it knows, so an id alone is never enough: a branch is rolled back
only when it is proven to be the tenant's. A transaction is proven to be the tenant's by its session or by the tables
that it locks, but the server connects a branch's id to neither. So a list of ids is rolled back when every detached
transaction of the server is the tenant's; on MySQL also the ids that one of its sessions is seen to have prepared.
"""

import asyncio
from collections.abc import Sequence

import structlog

from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.connections import MySQLConnections
from app.engines.mysql.errors import NO_SUCH_BRANCH, ignored
from app.engines.mysql.flavours import MYSQL
from app.engines.mysql.transactions import DETACHED, TransactionsNotListed, open_transactions

_HOLDING_TABLES = "SELECT DISTINCT engine_transaction_id FROM performance_schema.data_locks WHERE object_schema = %s"
# MariaDB shows locks only while somebody waits for them; the waiting DROP DATABASE is ours.
_HOLDING_UP = """
SELECT DISTINCT w.blocking_trx_id FROM information_schema.innodb_lock_waits w
JOIN information_schema.innodb_trx t ON t.trx_id = w.requesting_trx_id WHERE t.trx_mysql_thread_id = %s
"""
_DETACHED_LOCKS = """
SELECT DISTINCT t.trx_id, l.object_schema
FROM information_schema.innodb_trx t JOIN performance_schema.data_locks l ON l.engine_transaction_id = t.trx_id
WHERE t.trx_mysql_thread_id = %s AND TIMESTAMPDIFF(SECOND, t.trx_started, NOW()) >= %s LIMIT 10000
"""
_PREPARED_BY = """
SELECT e.xid_format_id, e.xid_gtrid, e.xid_bqual
FROM performance_schema.events_transactions_current e JOIN performance_schema.threads t USING (thread_id)
WHERE t.processlist_id IN %s AND e.xa_state = 'PREPARED'
"""
_LOOKS = 5
_AGAIN_SECONDS = 0.15


log = structlog.get_logger(__name__)


async def transactions_of_sessions(connections: MySQLConnections, sessions: list[int]) -> set[int]:
    """InnoDB's ids of the open transactions of these sessions."""
    if not sessions:
        return set()
    return {transaction for transaction, session in await open_transactions(connections) if session in sessions}


async def transactions_in_database(connection: MySQLConnection, name: str) -> set[int]:
    """InnoDB's ids of the transactions that lock a table of this database, as far as this flavour shows it without
    anybody waiting."""
    if connection.flavour is not MYSQL:
        return set()
    return {int(number) for (number,) in await connection.run(_HOLDING_TABLES, (name,))}


async def transactions_holding_up(connection: MySQLConnection, waiting_session: int) -> set[int]:
    """InnoDB's ids of the transactions that a waiting statement of ours waits for."""
    if connection.flavour is MYSQL:
        return set()
    return {int(number) for (number,) in await connection.run(_HOLDING_UP, (waiting_session,))}


async def end_detached(
    connection: MySQLConnection, connections: MySQLConnections, names: Sequence[str], seconds: float
) -> list[str]:
    """Rolls back the prepared branches without a session that were begun more than `seconds` ago, if all detached
    transactions of the server are such branches of these tenants: otherwise nobody knows which are whose. Returns
    the owner of each. Does nothing on MariaDB, which shows no owner."""
    if connection.flavour is not MYSQL or not names:
        return []
    owners: dict[int, set[str]] = {}
    for transaction, schema in await connection.run(_DETACHED_LOCKS, (DETACHED, seconds)):
        owners.setdefault(int(transaction), set()).add(str(schema))
    theirs = {transaction: min(schemas) for transaction, schemas in owners.items() if schemas <= set(names)}
    return sorted(theirs.values()) if await roll_back_all_of(connection, connections, set(theirs)) else []


async def branches_of_sessions(connection: MySQLConnection, sessions: list[int]) -> list[str]:
    """The ids, in the form of XA statements, of the branches that these sessions have just prepared."""
    if connection.flavour is not MYSQL or not sessions:
        return []
    rows = await connection.run(_PREPARED_BY, (sessions,))
    return [_xid(form, gtrid, bqual) for form, gtrid, bqual in rows if not (_ambiguous(gtrid) or _ambiguous(bqual))]


async def roll_back(connection: MySQLConnection, xids: list[str]) -> None:
    for xid in xids:
        with ignored(NO_SUCH_BRANCH):
            await connection.run(f"XA ROLLBACK {xid}")


async def roll_back_all_of(connection: MySQLConnection, connections: MySQLConnections, transactions: set[int]) -> bool:
    """Rolls back all branches of the server if all of them belong to these transactions of one tenant, whose sessions
    have ended. Returns whether it did: otherwise nobody knows which are whose.

    The ids are read first. A branch that another session still held then, and has left since, appears among the
    detached transactions and prevents the rollback; one that is still held makes the two counts differ.

    While there are more detached transactions than branches, all is read again: InnoDB's own, in which it keeps the
    statistics of tables, have no session either, and last for some milliseconds.
    """
    if not transactions:
        return False
    for look in range(_LOOKS):
        if look:
            await asyncio.sleep(_AGAIN_SECONDS)
        xids = await _prepared(connection)
        found = await open_transactions(connections)
        detached = {transaction for transaction, session in found if session == DETACHED}
        if len(detached) <= len(xids):
            break
    if not detached or not detached <= transactions or len(xids) != len(detached):
        return False
    await roll_back(connection, xids)
    return True


async def roll_back_what_is_known(
    connection: MySQLConnection, connections: MySQLConnections, name: str, transactions: set[int]
) -> None:
    """As `roll_back_all_of`, for a caller that doesn't depend on it: only logs when the server doesn't list all
    transactions. Another tenant may have too many, which is no reason to let this one, `name`, go on."""
    try:
        await roll_back_all_of(connection, connections, transactions)
    except TransactionsNotListed as error:
        log.warning("transactions_not_listed", tenant=name, reason=str(error))


async def _prepared(connection: MySQLConnection) -> list[str]:
    rows = await connection.run(connection.flavour.recover)
    if connection.flavour is not MYSQL:
        return [xid for *_, xid in rows]
    return [_split(form, int(length), data) for form, length, _, data in rows]


def _split(form: int, gtrid_length: int, data: str) -> str:
    """`data` is `0x…`, both parts of the id together."""
    digits = data.removeprefix("0x")
    return f"X'{digits[: 2 * gtrid_length]}',X'{digits[2 * gtrid_length :]}',{form}"


def _xid(form: int, gtrid: str | None, bqual: str | None) -> str:
    return ",".join([_part(gtrid), _part(bqual), str(form)])


def _ambiguous(text: str | None) -> bool:
    """The performance schema shows a part of an id as text, or as `0x…` if it isn't printable. A branch whose id is
    such a text looks like another's, which must not be rolled back in its place."""
    return text is not None and text.lower().startswith("0x")


def _part(text: str | None) -> str:
    return f"X'{(text or '').encode().hex()}'"
