"""PostgreSQL for the conformance suite."""

from typing import Any

import asyncpg

from app.engines.base import AdminAddress, Tenant
from app.engines.postgres import PostgresAdapter, make_template
from tests.engines.harness import EngineHost, RefusedError, Session, as_root
from tests.servers import RunningServer
from tests.support.waiting import LIMIT_SECONDS

PROVISIONER = "conformance_provisioner"
PASSWORD = "provisioner-password"

# Without what belongs to another installation, which changes behind a test's back: a service that other tests share.
_CATALOG = """
WITH others AS (
    SELECT rolname::text AS name FROM pg_roles WHERE split_part(shobj_description(oid, 'pg_authid'), '@', 2) <> ''
    UNION SELECT datname::text FROM pg_database WHERE split_part(shobj_description(oid, 'pg_database'), '@', 2) <> ''
), roles AS (
    SELECT * FROM pg_roles WHERE split_part(rolname::text, '_', 1) NOT IN (SELECT name FROM others)
), databases AS (
    SELECT * FROM pg_database WHERE split_part(datname::text, '_', 1) NOT IN (SELECT name FROM others)
), known AS (
    SELECT 0 AS oid UNION SELECT oid FROM roles UNION SELECT oid FROM databases
), members AS (
    SELECT * FROM pg_auth_members
    WHERE roleid IN (SELECT oid FROM known) AND member IN (SELECT oid FROM known)
)
SELECT 'role', rolname::text, rolcanlogin::text, shobj_description(oid, 'pg_authid') FROM roles
UNION ALL SELECT 'database', datname::text, datacl::text, shobj_description(oid, 'pg_database') FROM databases
UNION ALL SELECT 'setting', setdatabase::text, setrole::text, setconfig::text FROM pg_db_role_setting
    WHERE setdatabase IN (SELECT oid FROM known) AND setrole IN (SELECT oid FROM known)
UNION ALL SELECT 'member', roleid::text, member::text, grantor::text FROM members
UNION ALL SELECT 'depends', classid::text, objid::text, refobjid::text FROM pg_shdepend
    WHERE dbid IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
    AND (refclassid <> 'pg_authid'::regclass OR refobjid IN (SELECT oid FROM known))
    AND (classid <> 'pg_database'::regclass OR objid IN (SELECT oid FROM known))
    AND (classid <> 'pg_auth_members'::regclass OR objid IN (SELECT oid FROM members))
"""


_RIGHTS = """
WITH acls AS (
    SELECT 'relation' AS kind, c.oid::regclass::text AS name, 0 AS number,
           coalesce(c.relacl, acldefault('r', c.relowner)) AS acl
    FROM pg_class c WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.oid >= 16384
    UNION ALL SELECT 'column', attrelid::regclass::text, attnum, attacl FROM pg_attribute WHERE attrelid >= 16384
    UNION ALL SELECT 'schema', nspname::text, 0, coalesce(nspacl, acldefault('n', nspowner)) FROM pg_namespace
    UNION ALL SELECT 'database', datname::text, 0, coalesce(datacl, acldefault('d', datdba))
    FROM pg_database WHERE datname = current_database()
    UNION ALL SELECT 'function', oid::regprocedure::text, 0, coalesce(proacl, acldefault('f', proowner))
    FROM pg_proc WHERE proname ~ '^lo'
)
SELECT kind, name, number, grantee::regrole::text, grantor::regrole::text, privilege_type, is_grantable
FROM acls, aclexplode(acl)
"""


class PostgresSession(Session):
    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def run(self, statement: str) -> list[tuple[Any, ...]]:
        try:
            return [tuple(row) for row in await self.connection.fetch(statement)]
        except (asyncpg.PostgresConnectionError, asyncpg.OperatorInterventionError) as error:
            raise ConnectionResetError(str(error)) from error
        except asyncpg.PostgresError as error:
            raise RefusedError(error.sqlstate, str(error)) from error
        # The driver's own state is confused when the session ends between two messages of a statement.
        except (asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
            raise ConnectionResetError(str(error)) from error

    async def close(self) -> None:
        if not self.connection.is_closed():
            await self.connection.close(timeout=LIMIT_SECONDS)


class PostgresHost(EngineHost):
    """With `superuser`, the adapter's administrator is the server's own instead of a lesser one."""

    flavour = "postgres"
    parts = ("role", "role, database", "role, revoked")

    def __init__(self, server: RunningServer, *, superuser: bool = False) -> None:
        self._server = server
        self.log = server.log
        user, password = (server.user, server.password) if superuser else (PROVISIONER, PASSWORD)
        self.administrator = AdminAddress(
            host=server.host, port=server.port, user=user, password=password, tls=server.tls
        )
        self.adapter = PostgresAdapter(self.administrator)

    async def prepare(self) -> None:
        superuser = await asyncpg.connect(self._server.admin_dsn)
        await make_template(superuser, {"dsn": self._server.admin_dsn})
        await superuser.close()
        exists = await as_root(self, f"SELECT 1 FROM pg_roles WHERE rolname = '{PROVISIONER}'")
        if not exists:
            await as_root(
                self,
                f"CREATE ROLE {PROVISIONER} LOGIN CREATEDB CREATEROLE BYPASSRLS PASSWORD '{PASSWORD}'",
                f"GRANT SET ON PARAMETER temp_file_limit TO {PROVISIONER}",
                f"GRANT CONNECT ON DATABASE postgres TO {PROVISIONER}",
                "REVOKE CONNECT, TEMPORARY ON DATABASE postgres FROM PUBLIC",
                "REVOKE CONNECT, TEMPORARY ON DATABASE template1 FROM PUBLIC",
            )

    async def root(self) -> Session:
        return PostgresSession(await asyncpg.connect(self._server.admin_dsn))

    async def login(self, tenant: Tenant, *, database: str | None = None) -> Session:
        try:
            connection = await asyncpg.connect(
                host=self._server.host,
                port=self._server.port,
                user=tenant.name,
                password=tenant.password,
                database=database or tenant.name,
                timeout=LIMIT_SECONDS,
            )
        except asyncpg.PostgresError as error:
            raise RefusedError(error.sqlstate, str(error)) from error
        return PostgresSession(connection)

    async def catalog(self) -> set[tuple[Any, ...]]:
        return set(await as_root(self, _CATALOG))

    async def sessions(self, account: str) -> int:
        return len(await self._activity(account, "true"))

    async def statements(self, account: str) -> list[str]:
        return await self._activity(account, "state = 'active'")

    async def lock_waits(self, account: str) -> int:
        return len(await self._activity(account, "wait_event_type = 'Lock'"))

    async def _activity(self, account: str, condition: str) -> list[str]:
        rows = await as_root(
            self, f"SELECT query FROM pg_stat_activity WHERE usename LIKE '{account}%' AND {condition}"
        )
        return [query for (query,) in rows]

    async def as_root_in(self, tenant: Tenant, statement: str) -> list[tuple[Any, ...]]:
        inside = PostgresSession(await asyncpg.connect(self._server.admin_dsn, database=tenant.name))
        try:
            return await inside.run(statement)
        finally:
            await inside.close()

    async def rights(self, tenant: Tenant) -> set[tuple[Any, ...]]:
        return set(await self.as_root_in(tenant, _RIGHTS))

    async def _administrator(self) -> Session:
        return PostgresSession(
            await asyncpg.connect(
                host=self.administrator.host,
                port=self.administrator.port,
                user=self.administrator.user,
                password=self.administrator.password,
                database="postgres",
                server_settings={"createrole_self_grant": "set, inherit"},
            )
        )

    async def make_helper(self, tenant: Tenant, helper: Tenant) -> None:
        administrator = await self._administrator()
        await administrator.run(f"CREATE ROLE {helper.name} LOGIN PASSWORD '{helper.password}'")
        await administrator.run(f"GRANT CONNECT ON DATABASE {tenant.name} TO {helper.name}")
        await administrator.close()

    async def make_part(self, part: str, tenant: Tenant) -> None:
        administrator = await self._administrator()
        # The role and its comment share a transaction, so there is no role without one.
        await administrator.run(f"CREATE ROLE {tenant.name} {'NOLOGIN' if 'revoked' in part else 'LOGIN'}")
        await administrator.run(f"COMMENT ON ROLE {tenant.name} IS '{tenant.marker}'")
        if "database" in part:
            await administrator.run(f"CREATE DATABASE {tenant.name} TEMPLATE template0 ALLOW_CONNECTIONS false")
        await administrator.close()

    async def make_stranger(self, name: str, part: str) -> None:
        if part != "database":
            await as_root(self, f"CREATE ROLE {name} LOGIN PASSWORD 'stranger'")
        if part != "role":
            await as_root(self, f"CREATE DATABASE {name}")

    async def drop_stranger(self, name: str) -> None:
        await as_root(self, f"DROP DATABASE IF EXISTS {name}", f"DROP ROLE IF EXISTS {name}")

    def load_statement(self, megabytes: int) -> str:
        # So short a row goes as it is: TOAST would compress a longer one away.
        return f"INSERT INTO loaded SELECT repeat(md5(random()::text), 32) FROM generate_series(1, {megabytes * 1024})"
