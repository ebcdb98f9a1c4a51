"""Two passwords of one account at once, while its clients change from one to the other."""

from collections.abc import Sequence

from app.engines.mysql.accounts import account_name
from app.engines.mysql.connection import MySQLConnection


async def let_both_in(connection: MySQLConnection, user: str, old: str, new: str, *, has_password: bool) -> None:
    """Lets both passwords work, and no other, whatever the account had before; whether it has one at all matters only
    on MySQL. This is the last statement that the connection runs."""
    flavour = connection.flavour
    clauses = flavour.overlapping(old, new)
    statement = _altered(user, clauses if has_password else (flavour.identified(old), *clauses))
    await connection.run_and_part(statement)


async def let_one_in(connection: MySQLConnection, user: str, password: str) -> None:
    """Lets only this password work. If it worked before, it works in between too."""
    flavour = connection.flavour
    await connection.run(_altered(user, (flavour.identified(password), *flavour.dropping_second)))


def _altered(user: str, clauses: Sequence[str]) -> str:
    # A server takes them one after the other, each from the account's row as the one before has left it, and keeps all
    # or none.
    account = account_name(user)
    return f"ALTER USER {', '.join(f'{account} {clause}' for clause in clauses)}"
