"""Giving a tenant another database in place of its own, at once.

A database is made beside the tenant's, under a name that no tenant has, and takes its name in one transaction, in which
the old one gets the other name. So a process that dies leaves either the one or the other whole, and a database under
that name, which the next call removes.
"""

from typing import Any

from app.engines.base import EngineLimits, Tenant
from app.engines.naming import HELPER_SEPARATOR, literal
from app.engines.postgres import logins, prepared, statements
from app.engines.postgres.catalog import TenantObjects
from app.engines.postgres.connections import PostgresConnections
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
    await connection.execute(
        f'REVOKE ALL ON DATABASE "{name}" FROM PUBLIC; ALTER DATABASE "{name}" ALLOW_CONNECTIONS true'
    )
    await inside.give_schema(name)
    granted = statements.grants(name, frozen=False)
    if found.revoked:
        granted += (
            f'; REVOKE CONNECT ON DATABASE "{name}" FROM "{name}"; ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'
        )
    await connection.execute(granted)
    await drop_aside(connection, name)


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
    """Both get the other's name. To be run in one transaction."""
    between = f"{name}{HELPER_SEPARATOR}between"
    return "; ".join(
        f'ALTER DATABASE "{old}" RENAME TO "{new}"' for old, new in ((name, between), (aside, name), (between, aside))
    )
