"""Giving a tenant another database in place of its own, at once.

A database is made beside the tenant's, under a name that no tenant has, and takes its name in one transaction, in which
the old one gets the other name. So a process that dies leaves either the one or the other whole, and a database under
that name, which the next call removes.
"""

from typing import Any

from app.engines.base import EngineError, EngineLimits, Tenant
from app.engines.naming import HELPER_SEPARATOR, INSTALLATION_SEPARATOR, literal, written_marker
from app.engines.postgres import logins, prepared, statements
from app.engines.postgres.catalog import TenantObjects, find
from app.engines.postgres.connections import PostgresConnections
from app.engines.postgres.dumps import giving
from app.engines.postgres.sessions import end_sessions
from app.engines.postgres.tenant_database import TenantDatabase

_ASIDE = "aside"
"""The other database is `<name>_aside`."""
# What users have that only read. The tenant's own rights are given by what opens its database.
_CONNECTS = """
SELECT format('GRANT CONNECT ON DATABASE %I TO %I', $2::text, r.rolname) AS statement
FROM pg_database d CROSS JOIN LATERAL aclexplode(d.datacl) a JOIN pg_roles r ON r.oid = a.grantee
WHERE d.datname = $1 AND a.privilege_type = 'CONNECT' AND starts_with(r.rolname, $3::text || '_u')
"""


def aside_name(name: str) -> str:
    return f"{name}{HELPER_SEPARATOR}{_ASIDE}"


# Whether `scratch` has given the tenant the database that is the tenant's now. Only a database's owner, our
# administrator, writes comments on it.
_IS_DONE = """
SELECT split_part(shobj_description(s.oid, 'pg_database'), $3, 3) = t.oid::text
FROM pg_database t, pg_database s WHERE t.datname = $1 AND s.datname = $2
"""


async def clear(
    connections: PostgresConnections, connection: Any, tenant: Tenant, marker: str, found: TenantObjects
) -> None:
    """Gives the tenant a new database. The caller holds the tenant's lock, and read `found` under it."""
    name, aside = tenant.name, aside_name(tenant.name)
    inside = TenantDatabase(connections)
    await drop_aside(connection, name)
    limits = EngineLimits(connections=max(1, found.connections - statements.SERVICE_HEADROOM))
    await connection.execute(statements.create_database(aside, limits, found))
    await empty_of_sessions(connections, connection, name)
    await take_along(connection, name, aside)
    await connection.execute(
        f'BEGIN; {renamed(name, aside)}; COMMENT ON DATABASE "{name}" IS {literal(marker)}; COMMIT'
    )
    # Whose roles may log in only unless it is revoked.
    await connection.execute(statements.open_for_service(name))
    await inside.give_schema(name)
    granted = statements.grants(name, frozen=False)
    if found.revoked:
        granted += (
            f'; REVOKE CONNECT ON DATABASE "{name}" FROM "{name}"; ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'
        )
    await connection.execute(granted)
    await drop_aside(connection, name)


async def replace(
    connections: PostgresConnections, connection: Any, tenant: Tenant, scratch: Tenant, installation: str
) -> None:
    """Gives the tenant the database of `scratch`. The caller holds both tenants' locks. Before the exchange the
    tenant's database isn't touched; after it the repetition of a call that died goes on with the database that the
    tenant got."""
    mine = (await find(connection, tenant.name)).require(tenant)
    theirs = (await find(connection, scratch.name)).require(scratch)
    if not mine.revoked:
        raise EngineError(f"{tenant.name} is in use: its access has to be ended before its database is replaced")
    if not await connection.fetchval(_IS_DONE, tenant.name, scratch.name, INSTALLATION_SEPARATOR):
        await connection.execute(statements.close(scratch, theirs))
        await _give(connections, connection, scratch.name, scratch.name, tenant.name)
        await empty_of_sessions(connections, connection, tenant.name)
        await take_along(connection, tenant.name, scratch.name)
        await _exchange(connection, tenant, scratch, installation, (mine, theirs))
    await _give(connections, connection, scratch.name, tenant.name, scratch.name)


async def _give(connections: PostgresConnections, connection: Any, database: str, old: str, new: str) -> None:
    """Gives what `old` has in a database to `new`. The database is closed before and after, and its owners may not log
    in."""
    await connection.execute(f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS true')
    async with connections.admin_in(database) as inside:
        await giving.give_all(inside, database, old, new)
    await empty_of_sessions(connections, connection, database)


async def _exchange(
    connection: Any, tenant: Tenant, scratch: Tenant, installation: str, found: tuple[TenantObjects, TenantObjects]
) -> None:
    """Exchanges names, limits, rights and markers, in one transaction. The marker of `scratch` then says which database
    it gave."""
    mine, theirs = found
    given = await connection.fetchval("SELECT oid FROM pg_database WHERE datname = $1", scratch.name)
    marker = f"{scratch.marker}{INSTALLATION_SEPARATOR}{installation}{INSTALLATION_SEPARATOR}{given}"
    written = [
        "BEGIN",
        renamed(tenant.name, scratch.name),
        f'COMMENT ON DATABASE "{tenant.name}" IS {literal(written_marker(tenant, installation))}',
        f'COMMENT ON DATABASE "{scratch.name}" IS {literal(marker)}',
        f'ALTER DATABASE "{tenant.name}" CONNECTION LIMIT {mine.connections:d}',
        f'ALTER DATABASE "{scratch.name}" CONNECTION LIMIT {theirs.connections:d}',
        f'REVOKE ALL ON DATABASE "{tenant.name}" FROM "{scratch.name}"',
        f'REVOKE ALL ON DATABASE "{scratch.name}" FROM {", ".join(map(_role, mine.roles(tenant)))}',
        # Without CONNECT, as revoked tenants.
        f'GRANT CREATE, TEMPORARY ON DATABASE "{tenant.name}" TO "{tenant.name}"',
        f'GRANT CREATE, TEMPORARY ON DATABASE "{scratch.name}" TO "{scratch.name}"',
        "COMMIT",
    ]
    await connection.execute("; ".join(written))


def _role(name: str) -> str:
    return f'"{name}"'


async def drop_aside(connection: Any, name: str) -> None:
    await connection.execute(statements.drop_database(aside_name(name)))


async def empty_of_sessions(connections: PostgresConnections, connection: Any, name: str) -> None:
    """Closes the database, and ends what is in it: a database in use can't be renamed."""
    closing = f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'
    await connection.execute(closing)
    await end_sessions(connection, name)
    await prepared.roll_back(connection, connections, name)
    # That may have opened it.
    await connection.execute(closing)
    await end_sessions(connection, name)


async def take_along(connection: Any, old: str, new: str) -> None:
    """Gives a new database what roles have set for the old one, and the right of users to connect to it."""
    await connection.execute(f'REVOKE ALL ON DATABASE "{new}" FROM PUBLIC')
    await logins.copy_database_settings(connection, old, new)
    for row in await connection.fetch(_CONNECTS, old, new, old):
        await connection.execute(row["statement"])


def renamed(name: str, aside: str) -> str:
    """The statements that give each database the other's name, to be run in one transaction."""
    between = f"{name}{HELPER_SEPARATOR}between"
    return "; ".join(
        f'ALTER DATABASE "{old}" RENAME TO "{new}"' for old, new in ((name, between), (aside, name), (between, aside))
    )
