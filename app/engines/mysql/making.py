"""Making a tenant's database and its account, and using them as their tenant."""

from functools import partial

from app.engines.base import Tenant
from app.engines.mysql import bookkeeping, shares
from app.engines.mysql.accounts import account_name
from app.engines.mysql.blockers import ending_blockers
from app.engines.mysql.bookkeeping import ExistingObjects, FreezeState, TenantRow
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.grants import grant, grant_statement


async def make(connection: MySQLConnection, tenant: Tenant, row: TenantRow, connections: int) -> None:
    """Makes what isn't there yet, so that all is right at the end, however far an earlier call came. The caller holds
    the tenant's lock."""
    found, freeze_state = await bookkeeping.find_objects_and_freeze(connection, tenant.name)
    frozen = freeze_state is not FreezeState.NONE
    if found.none and not (frozen or row.revoked) and row.connections == connections:
        await _make_all(connection, tenant, connections)
        return
    await make_database(connection, tenant.name, found)
    account, identified = account_name(tenant.name), connection.flavour.identified(tenant.password)
    exists = tenant.name in found.accounts
    if exists:
        await connection.run(f"ALTER USER {account} {identified}")
    else:
        await connection.run(_create_user(connection, tenant, connections))
    if exists or row.connections != connections:
        await shares.set_total(connection, tenant.name, connections)
    if not row.revoked:
        await grant(connection, tenant.name, tenant.name, frozen=frozen)


async def _make_all(connection: MySQLConnection, tenant: Tenant, connections: int) -> None:
    """Makes everything, by statements that are sent together, under a name that nothing has: nobody has it open, so
    that none of the statements waits."""
    await connection.run_in_turn(
        (_create_database(tenant.name), ()),
        (_create_user(connection, tenant, connections), ()),
        (grant_statement(tenant.name, tenant.name), ()),
    )


async def make_database(connection: MySQLConnection, name: str, found: ExistingObjects) -> None:
    """Creates the database if it is missing: tenants may drop their own, and a frozen tenant can't create it again. For
    an existing database even IF NOT EXISTS would wait for whoever has its tables locked."""
    if not found.database:
        await ending_blockers(connection, name, partial(connection.run, _create_database(name)))


def _create_database(name: str) -> str:
    return f"CREATE DATABASE IF NOT EXISTS `{name}` CHARACTER SET utf8mb4"


def _create_user(connection: MySQLConnection, tenant: Tenant, connections: int) -> str:
    identified = connection.flavour.identified(tenant.password)
    return f"CREATE USER {account_name(tenant.name)} {identified} {shares.limit(connections)}"


async def write_and_read(session: MySQLConnection) -> bool:
    """Whether the tenant, whose session this is, reads what it wrote. The server runs the last statement, which removes
    the table, even when the first one finds such a table there."""
    *_, rows, _ = await session.run_in_turn(
        ("CREATE TABLE headwater_check (n INTEGER PRIMARY KEY)", ()),
        ("INSERT INTO headwater_check VALUES (42)", ()),
        ("SELECT n FROM headwater_check", ()),
        ("DROP TABLE headwater_check", ()),
    )
    return rows == [(42,)]
