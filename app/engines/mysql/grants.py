"""What the accounts of a tenant may do in its database."""

from collections.abc import Iterable, Mapping

from app.engines.base import Access
from app.engines.mysql.accounts import account_name, dump_helpers
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.errors import NO_SUCH_GRANT, ignored
from app.engines.mysql.flavours import FROZEN_PRIVILEGES, READ_ONLY_PRIVILEGES, TENANT_PRIVILEGES
from app.engines.mysql.readers import reader_name


async def grant(
    connection: MySQLConnection,
    database: str,
    user: str,
    access: Access = Access.READ_WRITE,
    *,
    frozen: bool = False,
    new: bool = False,
) -> None:
    """Grants exactly the privileges of this access, whatever was granted before. If the account is `new`, nothing
    was."""
    held = _privileges(access, frozen=frozen)
    place = f"ON `{database}`.*"
    await connection.run(grant_statement(database, user, access, frozen=frozen))
    for privilege in () if new else TENANT_PRIVILEGES.split(", "):
        if privilege not in held.split(", "):
            # One at a time: MySQL revokes none of several if one isn't granted.
            with ignored(NO_SUCH_GRANT):
                await connection.run(f"REVOKE {privilege} {place} FROM {account_name(user)}")


def grant_statement(database: str, user: str, access: Access = Access.READ_WRITE, *, frozen: bool = False) -> str:
    """The statement that grants the privileges of this access. It takes nothing away, which suffices for a new
    account."""
    return f"GRANT {_privileges(access, frozen=frozen)} ON `{database}`.* TO {account_name(user)}"


async def grant_all(
    connection: MySQLConnection,
    database: str,
    users: Iterable[str],
    access: Mapping[str, Access],
    *,
    frozen: bool = False,
) -> None:
    """As `grant`, for all accounts of a tenant. Accounts that may not write, or whose access isn't known here, are left
    as they are; while the tenant is frozen they get the rights of those that only read, except the accounts for
    questions and dumps, which are always left as they are."""
    for user in users:
        if user == database or access.get(user) is Access.READ_WRITE:
            await grant(connection, database, user, frozen=frozen)
        elif frozen and user not in {reader_name(database), *dump_helpers(database)}:
            await grant(connection, database, user, Access.READ_ONLY)


def _privileges(access: Access, *, frozen: bool) -> str:
    if access is Access.READ_ONLY:
        return READ_ONLY_PRIVILEGES
    return FROZEN_PRIVILEGES if frozen else TENANT_PRIVILEGES
