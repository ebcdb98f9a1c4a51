"""The connections of a database, shared out among its tenant's accounts: these servers limit each account by itself.

Users have what they were given, and the tenant's own account has the rest, at least one.
"""

import re

from app.engines.mysql import bookkeeping
from app.engines.mysql.accounts import account_name
from app.engines.mysql.connection import MySQLConnection

_LIMIT = re.compile(r" MAX_USER_CONNECTIONS ([0-9]+)\b")


def limit(connections: int) -> str:
    """The clause that limits an account; never 0, which is no limit."""
    return f"WITH MAX_USER_CONNECTIONS {max(1, connections):d}"


async def set_total(connection: MySQLConnection, name: str, connections: int) -> None:
    """Changes how many connections the tenant has."""
    await bookkeeping.write_connections(connection, name, connections)
    await share_out(connection, name)


async def share_out(connection: MySQLConnection, name: str) -> None:
    """Gives the tenant's own account the connections that its users leave. Does nothing while the tenant's total isn't
    known."""
    total = await bookkeeping.find_connections(connection, name)
    if total is not None:
        users = await bookkeeping.find_users(connection, name)
        rest = total - sum(user.connections for user in users.values() if not user.removed)
        await connection.run(f"ALTER USER {account_name(name)} {limit(rest)}")


async def own_limit(session: MySQLConnection) -> int | None:
    """The limit of the account whose session this is. Only it can read it."""
    [(text,)] = await session.run("SHOW CREATE USER CURRENT_USER()")
    found = _LIMIT.search(text)
    return int(found[1]) if found else None
