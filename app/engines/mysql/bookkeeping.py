"""Our own table on the host, because MySQL can't attach a marker to a database or an account.

The row is written before the database and the account, and only if neither exists under its name. So whatever exists
under a row's name is ours, however far its creation came. The row is deleted last.
"""

import secrets
from enum import Enum
from typing import Any

import msgspec
import pymysql

from app.engines.base import Access, EngineError, FoundTenant, NameTaken, Tenant
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.errors import DUPLICATE_COLUMN, DUPLICATE_ROW, NO_SUCH_COLUMN, ignored
from app.engines.naming import HELPER_SEPARATOR, read_marker, written_marker

_SCHEMA = (
    "CREATE DATABASE IF NOT EXISTS headwater",
    "CREATE TABLE IF NOT EXISTS headwater.tenants ("
    "name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY, "
    "marker VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, "
    "lock_name CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, "
    "revoked BOOLEAN NOT NULL DEFAULT FALSE, "
    "connections INT NULL"
    ") ENGINE = InnoDB",
    "CREATE TABLE IF NOT EXISTS headwater.frozen ("
    "name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY, "
    "complete BOOLEAN NOT NULL"
    ") ENGINE = InnoDB",
    "CREATE TABLE IF NOT EXISTS headwater.held ("
    "name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY, "
    "at_most INT NOT NULL"
    ") ENGINE = InnoDB",
    "CREATE TABLE IF NOT EXISTS headwater.users ("
    "name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY, "
    "access VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, "
    "connections INT NOT NULL, "
    "removed BOOLEAN NOT NULL"
    ") ENGINE = InnoDB",
)
# Of a table that an earlier version made.
_HAS_CONNECTIONS = "SELECT connections FROM headwater.tenants LIMIT 0"
_ADD_CONNECTIONS = "ALTER TABLE headwater.tenants ADD COLUMN connections INT NULL"


class TenantRow(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant of ours. `lock_name` is random, because named locks are server-wide: a tenant that knew the name
    could delay its own removal."""

    marker: str
    lock_name: str
    revoked: bool
    connections: int | None
    """How many connections its accounts may have together; None if the tenant was made before there were users."""
    holder: int | None = None
    """The session that has its lock, where that was asked for."""


class ExistingObjects(msgspec.Struct, frozen=True, kw_only=True):
    """What exists under a tenant's name. `accounts` has its own user, if it exists, and its helpers."""

    database: bool
    accounts: tuple[str, ...]

    @property
    def none(self) -> bool:
        return not (self.database or self.accounts)


class FreezeState(Enum):
    """The progress of a tenant's freeze. Until it is complete, sessions may be open that can still write."""

    NONE = None
    BEGUN = 0
    COMPLETE = 1


async def create_tables(connection: MySQLConnection) -> None:
    for statement in _SCHEMA:
        await connection.run(statement)
    try:
        await connection.run(_HAS_CONNECTIONS)
    except pymysql.MySQLError as error:
        if error.args[:1] != (NO_SUCH_COLUMN,):
            raise
        with ignored(DUPLICATE_COLUMN):  # another process was quicker
            await connection.run(_ADD_CONNECTIONS)


# In one column: the driver reads and describes each one of a response by itself.
_ROW = "SELECT JSON_ARRAY(marker, lock_name, revoked, connections{}) FROM headwater.tenants WHERE name = %s"
_ROW_AND_HOLDER = _ROW.format(", IS_USED_LOCK(lock_name)")
_FREEZE_STATE = "SELECT complete FROM headwater.frozen WHERE name = %s"


async def find_row(connection: MySQLConnection, tenant: Tenant) -> TenantRow | None:
    """The tenant's row; None if there is none. Raises `NameTaken` when the name has another marker."""
    return _read_row(await connection.run(_ROW.format(""), (tenant.name,)), tenant)


def _read_row(rows: list[tuple[Any, ...]], tenant: Tenant) -> TenantRow | None:
    if not rows:
        return None
    written, lock_name, revoked, connections, *holder = msgspec.json.decode(rows[0][0])
    marker, _ = read_marker(written)
    if marker != tenant.marker:
        raise NameTaken(f"the name {tenant.name} is not ours")
    return TenantRow(
        marker=marker,
        lock_name=lock_name,
        revoked=bool(revoked),
        connections=connections,
        holder=holder[0] if holder else None,
    )


async def take_lock(connection: MySQLConnection, tenant: Tenant, seconds: int) -> TenantRow | None:
    """Takes the tenant's lock for this session. Returns the tenant's row as it is then; None, and takes no lock, where
    there is no row. Raises `NameTaken`, and `EngineError` when another session has the lock for longer than
    `seconds`."""
    name = tenant.name
    # The row is read by a statement of its own, which begins when the lock is taken, and says whose lock it is: the
    # tenant may have been removed meanwhile, and made again. The first one is a SELECT: in any other statement, InnoDB
    # would lock the row for as long as it waits.
    _, rows = await connection.run_in_turn(
        ("SELECT GET_LOCK(lock_name, %s) FROM headwater.tenants WHERE name = %s", (seconds, name)),
        (_ROW_AND_HOLDER, (name,)),
    )
    row = _read_row(rows, tenant)
    if row is None:
        await connection.run("DO RELEASE_ALL_LOCKS()")
        return None
    if row.holder != connection.thread_id():
        raise EngineError(f"another call is working on {name}")
    return row


async def register(connection: MySQLConnection, tenant: Tenant, installation: str, connections: int) -> None:
    """Writes the tenant's row if nothing has its name yet. Raises `NameTaken`."""
    name = tenant.name
    rows, *objects = await connection.run_in_turn((_ROW.format(""), (name,)), *_objects(name))
    if _read_row(rows, tenant) is not None:
        return
    _refuse_strangers(_read_objects(objects), name)
    with ignored(DUPLICATE_ROW):  # another call was quicker
        await connection.run(
            "INSERT INTO headwater.tenants (name, marker, lock_name, connections) VALUES (%s, %s, %s, %s)",
            (name, written_marker(tenant, installation), secrets.token_hex(16), connections),
        )


async def refuse_strangers(connection: MySQLConnection, name: str) -> None:
    """For a name without a row: raises `NameTaken` when a database or an account has it."""
    _refuse_strangers(await find_objects(connection, name), name)


def _refuse_strangers(found: ExistingObjects, name: str) -> None:
    if not found.none:
        raise NameTaken(f"the name {name} is taken by something that is not ours")


async def find_objects(connection: MySQLConnection, name: str) -> ExistingObjects:
    return _read_objects(await connection.run_in_turn(*_objects(name)))


async def find_objects_and_freeze(connection: MySQLConnection, name: str) -> tuple[ExistingObjects, FreezeState]:
    """The same, and the progress of the tenant's freeze, by statements that are sent together."""
    *objects, freeze = await connection.run_in_turn(*_objects(name), (_FREEZE_STATE, (name,)))
    return _read_objects(objects), _read_freeze_state(freeze)


def _objects(name: str) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    return (
        ("SELECT 1 FROM information_schema.schemata WHERE schema_name = %s", (name,)),
        (
            "SELECT DISTINCT user FROM mysql.user WHERE user = %s OR LEFT(user, %s) = %s ORDER BY user",
            (name, len(name) + 1, name + HELPER_SEPARATOR),
        ),
    )


def _read_objects(results: list[list[tuple[Any, ...]]]) -> ExistingObjects:
    databases, accounts = results
    return ExistingObjects(database=bool(databases), accounts=tuple(user for (user,) in accounts))


async def mark_revoked(connection: MySQLConnection, name: str, revoked: bool) -> None:
    await connection.run("UPDATE headwater.tenants SET revoked = %s WHERE name = %s", (revoked, name))


async def is_revoked(connection: MySQLConnection, name: str) -> bool:
    rows = await connection.run("SELECT revoked FROM headwater.tenants WHERE name = %s", (name,))
    return bool(rows and rows[0][0])


async def find_connections(connection: MySQLConnection, name: str) -> int | None:
    rows = await connection.run("SELECT connections FROM headwater.tenants WHERE name = %s", (name,))
    return rows[0][0] if rows else None


async def write_connections(connection: MySQLConnection, name: str, connections: int) -> None:
    await connection.run("UPDATE headwater.tenants SET connections = %s WHERE name = %s", (connections, name))


async def freeze_state(connection: MySQLConnection, name: str) -> FreezeState:
    return _read_freeze_state(await connection.run(_FREEZE_STATE, (name,)))


def _read_freeze_state(rows: list[tuple[Any, ...]]) -> FreezeState:
    return FreezeState(rows[0][0] if rows else None)


async def mark_frozen(connection: MySQLConnection, name: str, freeze_state: FreezeState) -> None:
    if freeze_state is FreezeState.NONE:
        await connection.run("DELETE FROM headwater.frozen WHERE name = %s", (name,))
    else:
        await connection.run(
            "REPLACE INTO headwater.frozen (name, complete) VALUES (%s, %s)", (name, freeze_state.value)
        )


async def write_held(connection: MySQLConnection, name: str, at_most: int) -> None:
    """Records that the tenant gets fewer connections than its limit from now on."""
    await connection.run("REPLACE INTO headwater.held (name, at_most) VALUES (%s, %s)", (name, at_most))


async def delete_held(connection: MySQLConnection, name: str) -> None:
    await connection.run("DELETE FROM headwater.held WHERE name = %s", (name,))


async def find_held(connection: MySQLConnection) -> list[str]:
    return [name for (name,) in await connection.run("SELECT name FROM headwater.held ORDER BY name")]


class UserRow(msgspec.Struct, frozen=True, kw_only=True):
    """The row of a further account of a tenant, written before the account is made. The server doesn't show us what an
    account may do, and the account of a frozen tenant may do less than its access says."""

    access: Access
    connections: int
    removed: bool = False
    """The account was removed, but is kept, closed, for what it has defined."""


async def find_users(connection: MySQLConnection, name: str) -> dict[str, UserRow]:
    """The tenant's further accounts by their names, as far as there are rows of them."""
    rows = await connection.run(
        "SELECT name, access, connections, removed FROM headwater.users WHERE LEFT(name, %s) = %s",
        (len(name) + 1, name + HELPER_SEPARATOR),
    )
    return {
        user: UserRow(access=Access(access), connections=connections, removed=bool(removed))
        for user, access, connections, removed in rows
    }


async def write_user(connection: MySQLConnection, user: str, row: UserRow) -> None:
    await connection.run(
        "REPLACE INTO headwater.users (name, access, connections, removed) VALUES (%s, %s, %s, %s)",
        (user, row.access.value, row.connections, row.removed),
    )


async def delete_user(connection: MySQLConnection, user: str) -> None:
    await connection.run("DELETE FROM headwater.users WHERE name = %s", (user,))


async def delete_rows(connection: MySQLConnection, name: str) -> None:
    await connection.run(
        "DELETE FROM headwater.users WHERE LEFT(name, %s) = %s", (len(name) + 1, name + HELPER_SEPARATOR)
    )
    await connection.run("DELETE FROM headwater.frozen WHERE name = %s", (name,))
    await delete_held(connection, name)
    await connection.run("DELETE FROM headwater.tenants WHERE name = %s", (name,))


async def list_rows(connection: MySQLConnection) -> list[FoundTenant]:
    rows = await connection.run(
        "SELECT t.name, t.marker, s.schema_name IS NOT NULL, t.revoked, "
        "EXISTS (SELECT 1 FROM mysql.user u WHERE u.user = t.name), "
        "EXISTS (SELECT 1 FROM mysql.db d WHERE d.user = t.name AND d.db = t.name), f.name IS NOT NULL "
        "FROM headwater.tenants t LEFT JOIN headwater.frozen f ON f.name = t.name "
        "LEFT JOIN information_schema.schemata s ON s.schema_name = CONVERT(t.name USING utf8mb4) ORDER BY t.name"
    )
    return [
        FoundTenant(
            name=name,
            marker=read_marker(written)[0],
            installation=read_marker(written)[1],
            has_database=bool(database),
            has_role=bool(role),
            admits=bool(role and not revoked),
            may_connect=bool(granted),
            may_create=bool(granted and not frozen),
            has_schema=bool(database),
        )
        for name, written, database, revoked, role, granted, frozen in rows
    ]
