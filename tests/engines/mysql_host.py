"""MySQL and MariaDB for the conformance suite."""

from typing import Any

import aiomysql
import pymysql

from app.engines.base import AdminAddress, Tenant
from app.engines.mysql import MySQLAdapter, administrator_grants
from tests.engines.harness import EngineHost, RefusedError, Session, as_root
from tests.mysql_client import leave
from tests.servers import RunningServer

PROVISIONER = "conformance_provisioner"
PASSWORD = "Provisioner-passw0rd"
_CONNECTION_LOST = (2006, 2013, 1053, 1927, 4031)

_CATALOG = (
    "SELECT 'database', schema_name FROM information_schema.schemata",
    "SELECT 'account', User, Host FROM mysql.user",
    "SELECT 'grant', Db, User, Host FROM mysql.db",
    "SELECT 'table', table_schema, table_name FROM information_schema.tables "
    "WHERE table_schema NOT IN ('information_schema', 'performance_schema', 'sys', 'mysql')",
    "SELECT 'row', name FROM headwater.tenants",
    "SELECT 'frozen', name FROM headwater.frozen",
    "SELECT 'user', name FROM headwater.users",
)
_OTHERS = "SELECT name FROM headwater.tenants WHERE marker LIKE '%@%'"
"""Of another installation, which changes behind a test's back: a service that other tests share."""


class MySQLSession(Session):
    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._under_way = False

    async def run(self, statement: str) -> list[tuple[Any, ...]]:
        self._under_way = True
        try:
            await self.connection.query(statement)
        except pymysql.err.InterfaceError as error:
            raise ConnectionResetError(str(error)) from error
        except pymysql.MySQLError as error:
            if error.args[0] in _CONNECTION_LOST:
                raise ConnectionResetError(str(error)) from error
            self._under_way = False
            raise RefusedError(str(error.args[0]), str(error)) from error
        self._under_way = False
        return list(self.connection._result.rows or ())

    async def close(self) -> None:
        if self._under_way:
            self.connection.close()
        else:
            await leave(self.connection)


class MySQLHost(EngineHost):
    parts = ("row", "row, database", "row, account", "row, account, database", "row, revoked")

    def __init__(self, server: RunningServer) -> None:
        self._server = server
        self.flavour = server.flavour
        self.administrator = AdminAddress(
            host=server.host, port=server.port, user=PROVISIONER, password=PASSWORD, tls=server.tls
        )
        self.adapter = MySQLAdapter(self.administrator)

    async def prepare(self) -> None:
        account = f"'{PROVISIONER}'@'%'"
        await as_root(
            self,
            f"CREATE USER IF NOT EXISTS {account} IDENTIFIED BY '{PASSWORD}'",
            *administrator_grants(self.flavour, account),
        )
        await self.adapter.harden_host()

    async def root(self) -> Session:
        return await self._connect(self._server.user, self._server.password, None)

    async def login(self, tenant: Tenant, *, database: str | None = None) -> Session:
        return await self._connect(tenant.name, tenant.password, database or tenant.name)

    async def _connect(self, user: str, password: str, database: str | None) -> Session:
        try:
            connection = await aiomysql.connect(
                host=self._server.host,
                port=self._server.port,
                user=user,
                password=password,
                db=database,
                autocommit=True,
            )
        except pymysql.MySQLError as error:
            raise RefusedError(str(error.args[0]), str(error)) from error
        return MySQLSession(connection)

    async def catalog(self) -> set[tuple[Any, ...]]:
        # What is made or removed meanwhile has its row before, or after.
        session = await self.root()
        try:
            before, *found, after = [await session.run(statement) for statement in (_OTHERS, *_CATALOG, _OTHERS)]
        finally:
            await session.close()
        others = {name for (name,) in (*before, *after)}
        return {
            row for rows in found for row in rows if others.isdisjoint(str(part).partition("_")[0] for part in row[1:])
        }

    async def sessions(self, account: str) -> int:
        return len(await self._processes(account, "TRUE"))

    async def statements(self, account: str) -> list[str]:
        return await self._processes(account, "info IS NOT NULL")

    async def lock_waits(self, account: str) -> int:
        return len(await self._processes(account, "state LIKE 'Waiting for %lock'"))

    async def _processes(self, account: str, condition: str) -> list[str]:
        rows = await as_root(
            self, f"SELECT info FROM information_schema.processlist WHERE user LIKE '{account}%' AND {condition}"
        )
        return [info for (info,) in rows]

    async def rights(self, tenant: Tenant) -> set[tuple[Any, ...]]:
        grants = await as_root(self, f"SHOW GRANTS FOR '{tenant.name}'@'%'")
        return {row for row in grants if " ON *.* " not in row[0]}

    async def make_part(self, part: str, tenant: Tenant) -> None:
        statements = [
            "INSERT INTO headwater.tenants (name, marker, lock_name, revoked) VALUES "
            f"('{tenant.name}', '{tenant.marker}', 'lock{tenant.name}', {'revoked' in part})"
        ]
        if "database" in part:
            statements.append(f"CREATE DATABASE {tenant.name}")
        if "account" in part:
            statements.append(f"CREATE USER {tenant.name}@'%' IDENTIFIED BY 'an earlier call''s'")
        await as_root(self, *statements)

    async def make_stranger(self, name: str, part: str) -> None:
        if part != "database":
            await as_root(self, f"CREATE USER {name}@'%' IDENTIFIED BY 'stranger'")
        if part != "role":
            await as_root(self, f"CREATE DATABASE {name}")

    async def drop_stranger(self, name: str) -> None:
        await as_root(self, f"DROP DATABASE IF EXISTS {name}", f"DROP USER IF EXISTS {name}@'%'")

    async def make_helper(self, tenant: Tenant, helper: Tenant) -> None:
        await as_root(
            self,
            f"CREATE USER {helper.name}@'%' IDENTIFIED BY '{helper.password}'",
            f"GRANT SELECT ON {tenant.name}.* TO {helper.name}@'%'",
        )

    def load_statement(self, megabytes: int) -> str:
        rows = megabytes * 1024
        return (
            "INSERT INTO loaded "
            f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {min(rows, 1000)}) "
            f"SELECT REPEAT(SHA2(RAND(), 256), 16) FROM n a JOIN (SELECT i FROM n WHERE i <= {max(1, rows // 1000)}) b"
        )
