"""The SELECT-only account of a MySQL tenant."""

from collections.abc import Awaitable, Callable

from app.engines.mysql.accounts import account_name
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.flavours import READ_ONLY_PRIVILEGES
from app.engines.naming import HELPER_SEPARATOR
from app.engines.querying import READER_PURPOSE, READER_SESSIONS


def reader_name(name: str) -> str:
    return f"{name}{HELPER_SEPARATOR}{READER_PURPOSE}"


async def write_account(connection: MySQLConnection, name: str, password: str, *, exists: bool) -> None:
    """Creates or alters the account. Its name shows whose helper it is: closing or removing the tenant closes or
    removes its helpers too."""
    reader = account_name(reader_name(name))
    await connection.run(
        f"{'ALTER' if exists else 'CREATE'} USER {reader} {connection.flavour.identified(password)} "
        # Twice as many, so that statements can be killed.
        f"WITH MAX_USER_CONNECTIONS {2 * READER_SESSIONS:d}"
    )
    await connection.run(f"GRANT {READ_ONLY_PRIVILEGES} ON `{name}`.* TO {reader}")


async def end_session(opened: Callable[[], Awaitable[MySQLConnection]], number: int) -> None:
    """Ends one of the account's own sessions from another session, for which the account has room."""
    connection = await opened()
    try:
        await connection.run(f"KILL {number:d}")
    finally:
        connection.quit()
