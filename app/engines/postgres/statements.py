"""The SQL statements that create, limit, close and open a tenant, joined where one implicit transaction can hold
them."""

from app.core.scram import verifier
from app.engines.base import EngineLimits, Tenant
from app.engines.naming import literal
from app.engines.postgres.catalog import TenantObjects
from app.engines.postgres.guard import TEMPLATE

SERVICE_HEADROOM = 5
"""Sessions of a database beyond its tenant's limit, for the service's own work."""
TEMP_FILE_LIMIT = "4GB"
"""For each session. Enough for the index builds of a large plan, but no single query fills a shared disk."""


def write_role(tenant: Tenant, marker: str, limits: EngineLimits, found: TenantObjects) -> str:
    """Creates the role together with its marker. An existing role stays revoked, or retired, if it is."""
    password = f"PASSWORD {literal(verifier(tenant.password))}"
    if found.role:
        statements = [f'ALTER ROLE "{account(tenant)}" {password}', limit_logins(tenant, limits.connections, found)]
    else:
        statements = [
            f'CREATE ROLE "{tenant.name}" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS '
            f"{password} CONNECTION LIMIT {limits.connections:d}",
            f'COMMENT ON ROLE "{tenant.name}" IS {literal(marker)}',
        ]
    if found.temp_limit:
        statements.append(f'ALTER ROLE "{tenant.name}" SET temp_file_limit = {literal(TEMP_FILE_LIMIT)}')
    return "; ".join(statements)


def restore_credentials(tenant: Tenant) -> str:
    """The statements that undo what a role can always do: change its own password, and make its sessions load a library
    that doesn't exist."""
    role = f'ALTER ROLE "{account(tenant)}"'
    statements = [
        f"{role} PASSWORD {literal(verifier(tenant.password))}",
        f"{role} RESET local_preload_libraries",
        f'{role} IN DATABASE "{tenant.name}" RESET local_preload_libraries',
    ]
    if tenant.login:
        # A login may also keep itself from becoming the tenant's role.
        statements += [
            f"{role} SET role = {literal(tenant.name)}",
            f'{role} IN DATABASE "{tenant.name}" RESET role',
        ]
    return "; ".join(statements)


def account(tenant: Tenant) -> str:
    """The role that the tenant logs in as."""
    return tenant.login or tenant.name


def create_database(name: str, limits: EngineLimits, found: TenantObjects) -> str:
    """Creates the database, closed until PUBLIC has lost its rights. CREATE DATABASE can't be in a transaction with
    other statements."""
    template = TEMPLATE if found.guarded else "template0"
    return (
        f"CREATE DATABASE \"{name}\" TEMPLATE {template} ENCODING 'UTF8' ALLOW_CONNECTIONS false "
        f"CONNECTION LIMIT {limits.connections + SERVICE_HEADROOM:d}"
    )


def drop_database(name: str) -> str:
    """Drops a database whose sessions were ended. Not WITH (FORCE), which fails for everyone but a superuser while
    autovacuum is in the database; without it the server ends autovacuum and waits."""
    return f'DROP DATABASE IF EXISTS "{name}"'


def open_database(tenant: Tenant, marker: str, *, frozen: bool = False) -> str:
    """Lets the tenant's role connect, and nobody else; whether the role may log in is a separate right."""
    return "; ".join(
        [
            f'COMMENT ON DATABASE "{tenant.name}" IS {literal(marker)}',
            f'REVOKE ALL ON DATABASE "{tenant.name}" FROM PUBLIC',
            grants(tenant.name, frozen=frozen),
            f'ALTER DATABASE "{tenant.name}" ALLOW_CONNECTIONS true',
        ]
    )


def grants(name: str, *, frozen: bool) -> str:
    """All rights of a tenant on its database. Without CREATE it is frozen: see `guard.sql`."""
    if frozen:
        return (
            f'GRANT CONNECT ON DATABASE "{name}" TO "{name}"; '
            f'REVOKE CREATE, TEMPORARY ON DATABASE "{name}" FROM "{name}"'
        )
    return f'GRANT CONNECT, CREATE, TEMPORARY ON DATABASE "{name}" TO "{name}"'


def limit(tenant: Tenant, limits: EngineLimits, found: TenantObjects) -> str:
    return (
        f"{limit_logins(tenant, limits.connections, found)}; "
        f'ALTER DATABASE "{tenant.name}" CONNECTION LIMIT {limits.connections + SERVICE_HEADROOM:d}'
    )


def limit_logins(tenant: Tenant, connections: int, found: TenantObjects) -> str:
    """Gives each of the other logins what the users leave of the limit. The logins of an overlap share it, which
    `guard.sql` enforces."""
    shared = remaining(connections, found.user_connections)
    roles = [role for role in (tenant.name, *found.logins) if role not in found.retired]
    return "; ".join(f'ALTER ROLE "{role}" CONNECTION LIMIT {shared:d}' for role in roles)


def remaining(connections: int, of_users: int) -> int:
    return max(1, connections - of_users)


def close(tenant: Tenant, found: TenantObjects) -> str:
    """The statements that close the tenant's roles and database; empty when there is nothing to close."""
    statements = [f'ALTER ROLE "{role}" NOLOGIN' for role in found.roles(tenant)]
    usable = found.database and not found.invalid
    if usable:
        statements.append(f'ALTER DATABASE "{tenant.name}" ALLOW_CONNECTIONS false')
    if usable and found.role:
        statements.append(f'REVOKE CONNECT ON DATABASE "{tenant.name}" FROM "{tenant.name}"')
    return "; ".join(statements)


def allow_logins(tenant: Tenant, found: TenantObjects) -> str:
    return "; ".join(f'ALTER ROLE "{role}" LOGIN' for role in found.admitted(tenant))


def open_for_service(database: str) -> str:
    """Opens a closed database for the service, without any need to let in a role of its tenant."""
    return f'REVOKE ALL ON DATABASE "{database}" FROM PUBLIC; ALTER DATABASE "{database}" ALLOW_CONNECTIONS true'


NOT_DURABLY = "SET LOCAL synchronous_commit = off; "
"""Before statements that are sent together: nobody waits for the disk, and a crash of the server may undo them."""


def drop_role(role: str) -> str:
    """Drops the role, with what it may own in the administrator's database, if that is open to everybody."""
    return f'DROP OWNED BY "{role}"; DROP ROLE "{role}"'
