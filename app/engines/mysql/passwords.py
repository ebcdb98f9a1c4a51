"""Two passwords of one account at once, while its clients change from one to the other."""

from collections.abc import Sequence

import pymysql

from app.engines.mysql.accounts import account_name
from app.engines.mysql.connections import MySQLConnection
from app.engines.mysql.errors import EMPTY_PASSWORD


async def let_both_in(connection: MySQLConnection, user: str, old: str, new: str) -> None:
    """Both passwords work afterwards, and no other, whatever the account had before."""
    flavour = connection.flavour
    clauses = flavour.overlapping(old, new)
    try:
        await _alter(connection, user, clauses)
    except pymysql.MySQLError as error:
        if error.args[:1] != (EMPTY_PASSWORD,):
            raise
        # The tenant has taken its password away, and the server the second one with it.
        await _alter(connection, user, (flavour.identified(old), *clauses))


async def let_one_in(connection: MySQLConnection, user: str, password: str) -> None:
    """Only this password works afterwards. It works in between, too, if it did before."""
    await _alter(connection, user, (connection.flavour.identified(password), *connection.flavour.dropping_second))


async def _alter(connection: MySQLConnection, user: str, clauses: Sequence[str]) -> None:
    # A server takes them one after the other, each from the account's row as the one before has left it, and keeps all
    # or none.
    account = account_name(user)
    await connection.run(f"ALTER USER {', '.join(f'{account} {clause}' for clause in clauses)}")
