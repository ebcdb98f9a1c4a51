"""The PostgreSQL adapter: a role and a database of one name, the database owned by our administrator.

The tenant doesn't own its database, because an owner may lift its connection limit, open it to PUBLIC and drop
it. It owns the schema `public` instead.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import asyncpg

from app.contracts.base import Engine
from app.engines.base import (
    AdminAddress,
    EngineAdapter,
    EngineError,
    EngineLimits,
    FoundTenant,
    HostFacts,
    Tenant,
    Usage,
)
from app.engines.naming import check_tenant, literal
from app.engines.postgres import catalog, host
from app.engines.postgres.connections import Connections
from app.engines.postgres.scram import verifier

SERVICE_HEADROOM = 5
"""Sessions that a database takes beyond its tenant's: the service's own work in it."""
TEMP_FILE_LIMIT = "4GB"
"""Of each session. Room for the index builds of a large plan, yet no single query fills a shared disk."""
SESSIONS_END_SECONDS = 20


class PostgresAdapter(EngineAdapter):
    engine = Engine.POSTGRES
    label = "PostgreSQL"
    uri_scheme = "postgresql"
    default_port = 5432

    def __init__(self, address: AdminAddress) -> None:
        super().__init__(address)
        self._connections = Connections(address)

    async def close(self) -> None:
        await self._connections.close()

    async def inspect_host(self) -> HostFacts:
        async with self._connections.admin() as connection:
            return await host.inspect(connection)

    async def harden_host(self) -> tuple[str, ...]:
        async with self._connections.admin() as connection:
            return await host.harden(connection)

    async def create(self, tenant: Tenant, limits: EngineLimits) -> None:
        check_tenant(tenant)
        async with self._connections.locked(tenant.name) as connection:
            found = (await catalog.find(connection, tenant.name)).check(tenant)
            await connection.execute(_role_statements(tenant, limits, found))
            if not found.database:
                # Closed until PUBLIC has lost its rights to it.
                await connection.execute(
                    f"CREATE DATABASE \"{tenant.name}\" TEMPLATE template0 ENCODING 'UTF8' ALLOW_CONNECTIONS false"
                )
            revoked = found.role and not found.can_login
            if not revoked:
                await connection.execute(_database_statements(tenant, limits))
                await self._hand_over_schema(tenant.name)

    async def _hand_over_schema(self, name: str) -> None:
        async with self._connections.admin_in(name) as connection:
            try:
                await connection.execute(f'ALTER SCHEMA public OWNER TO "{name}"')
            except asyncpg.InvalidSchemaNameError:  # the tenant may drop what it owns
                await connection.execute(f'CREATE SCHEMA public AUTHORIZATION "{name}"')

    async def verify_login(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._connections.tenant(tenant.name, tenant.password) as connection:
            # One transaction, so that a crash leaves no table behind.
            await connection.execute(
                "BEGIN; CREATE TABLE public.headwater_check (n integer); INSERT INTO public.headwater_check VALUES (42)"
            )
            if await connection.fetchval("SELECT n FROM public.headwater_check") != 42:
                raise EngineError(f"{tenant.name} doesn't read what it wrote")
            await connection.execute("DROP TABLE public.headwater_check; COMMIT")

    async def set_limits(self, tenant: Tenant, limits: EngineLimits) -> None:
        check_tenant(tenant)
        async with self._connections.locked(tenant.name) as connection:
            (await catalog.find(connection, tenant.name)).require(tenant)
            await connection.execute(_limit_statements(tenant, limits))

    async def revoke(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._connections.locked(tenant.name) as connection:
            found = (await catalog.find(connection, tenant.name)).check(tenant)
            # Committed before any session is ended, or its client would be back in the gap.
            statements = [f'ALTER ROLE "{role}" NOLOGIN' for role in _roles(tenant, found)]
            if found.database:
                statements.append(f'ALTER DATABASE "{tenant.name}" ALLOW_CONNECTIONS false')
            if found.database and found.role:
                statements.append(f'REVOKE CONNECT ON DATABASE "{tenant.name}" FROM "{tenant.name}"')
            await connection.execute("; ".join(statements))
            await _end_sessions(connection, tenant.name)

    async def restore(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._connections.locked(tenant.name) as connection:
            found = (await catalog.find(connection, tenant.name)).require(tenant)
            await connection.execute("; ".join(_access_statements(tenant)))
            # What a revocation found half made is finished here, before anybody logs in.
            await self._hand_over_schema(tenant.name)
            await connection.execute("; ".join(f'ALTER ROLE "{role}" LOGIN' for role in _roles(tenant, found)))

    async def destroy(self, tenant: Tenant) -> None:
        check_tenant(tenant)
        async with self._connections.locked(tenant.name) as connection:
            found = (await catalog.find(connection, tenant.name)).check(tenant)
            if found.database:
                await connection.execute(f'DROP DATABASE IF EXISTS "{tenant.name}" WITH (FORCE)')
            # The role goes last: its comment is what proves an unfinished removal to be ours.
            for role in reversed(_roles(tenant, found)):
                await connection.execute(f'DROP OWNED BY "{role}"; DROP ROLE "{role}"')

    async def measure(self, names: Sequence[str]) -> dict[str, Usage]:
        async with self._connections.admin() as connection:
            return await catalog.measure(connection, names)

    async def list_tenants(self) -> list[FoundTenant]:
        async with self._connections.admin() as connection:
            return await catalog.list_marked(connection)


def _roles(tenant: Tenant, found: catalog.Found) -> list[str]:
    return [*([tenant.name] if found.role else []), *found.helpers]


def _role_statements(tenant: Tenant, limits: EngineLimits, found: catalog.Found) -> str:
    """One implicit transaction: the role never exists without its marker."""
    password = f"PASSWORD {literal(verifier(tenant.password))} CONNECTION LIMIT {limits.connections:d}"
    if found.role:
        statements = [f'ALTER ROLE "{tenant.name}" {password}']
    else:
        statements = [
            f'CREATE ROLE "{tenant.name}" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS '
            + password,
            f'COMMENT ON ROLE "{tenant.name}" IS {literal(tenant.marker)}',
        ]
    if found.temp_limit:
        statements.append(f'ALTER ROLE "{tenant.name}" SET temp_file_limit = {literal(TEMP_FILE_LIMIT)}')
    return "; ".join(statements)


def _database_statements(tenant: Tenant, limits: EngineLimits) -> str:
    return "; ".join(
        [
            f'COMMENT ON DATABASE "{tenant.name}" IS {literal(tenant.marker)}',
            _limit_statements(tenant, limits),
            *_access_statements(tenant),
        ]
    )


def _limit_statements(tenant: Tenant, limits: EngineLimits) -> str:
    return (
        f'ALTER ROLE "{tenant.name}" CONNECTION LIMIT {limits.connections:d}; '
        f'ALTER DATABASE "{tenant.name}" CONNECTION LIMIT {limits.connections + SERVICE_HEADROOM:d}'
    )


def _access_statements(tenant: Tenant) -> list[str]:
    return [
        f'REVOKE ALL ON DATABASE "{tenant.name}" FROM PUBLIC',
        f'GRANT CONNECT, CREATE, TEMPORARY ON DATABASE "{tenant.name}" TO "{tenant.name}"',
        f'ALTER DATABASE "{tenant.name}" ALLOW_CONNECTIONS true',
    ]


async def _end_sessions(connection: Any, name: str) -> None:
    """Raises `EngineError` when some session is still there after `SESSIONS_END_SECONDS`."""
    deadline = time.monotonic() + SESSIONS_END_SECONDS
    while await catalog.arriving(connection, name) + await catalog.terminate(connection, name):
        if time.monotonic() > deadline:
            raise EngineError(f"sessions of {name} don't end")
        await asyncio.sleep(0.02)
