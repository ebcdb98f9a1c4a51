"""The service's account on the stack's engine hosts: with the rights to provision, and no more.

Each function may run again at any time, and corrects what it finds.
"""

from collections.abc import Sequence

import aiomysql
import asyncpg

from app.engines.base import AdminAddress, EngineError
from app.engines.mysql import administrator_grants
from app.engines.postgres import make_template
from app.engines.tls import PLAIN
from app.local.errors import StackError
from app.local.mysql import SUPERUSER, MysqlService
from app.local.ports import LOOPBACK
from app.local.postgres import PostgresService

NAME = "headwater_provisioner"


async def create(server: PostgresService | MysqlService, password: str, extensions: Sequence[str]) -> AdminAddress:
    """Creates the account on a server of either engine; `extensions` are PostgreSQL's. Raises `StackError` for an
    extension that tenants may not have."""
    match server:
        case PostgresService():
            return await on_postgres(server, password, extensions)
        case MysqlService():
            return await on_mysql(server, password)


async def on_postgres(server: PostgresService, password: str, extensions: Sequence[str]) -> AdminAddress:
    """Creates the role and the template of tenant databases, and closes what a new cluster leaves open to everyone.
    Raises `StackError` for an extension that tenants may not have."""
    connection = await asyncpg.connect(server.dsn(), timeout=10)
    try:
        try:
            await make_template(connection, {"dsn": server.dsn(), "timeout": 10}, extensions=extensions)
        except EngineError as error:
            raise StackError(str(error)) from error
        async with connection.transaction():
            if not await connection.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", NAME):
                await connection.execute(f"CREATE ROLE {NAME}")
            await connection.execute(
                f"""
                ALTER ROLE {NAME} LOGIN CREATEDB CREATEROLE NOSUPERUSER NOREPLICATION BYPASSRLS PASSWORD '{password}';
                ALTER ROLE {NAME} SET createrole_self_grant = 'set, inherit';
                GRANT SET ON PARAMETER temp_file_limit TO {NAME};
                GRANT pg_use_reserved_connections TO {NAME};
                REVOKE CONNECT, TEMPORARY ON DATABASE postgres, template1 FROM PUBLIC;
                GRANT CONNECT ON DATABASE postgres TO {NAME};
                """
            )
    finally:
        await connection.close()
    return AdminAddress(host=LOOPBACK, port=server.port, user=NAME, password=password, database="postgres", tls=PLAIN)


async def on_mysql(server: MysqlService, password: str) -> AdminAddress:
    """Creates the account with the privileges that the adapter needs, on MariaDB too."""
    account = f"'{NAME}'@'{LOOPBACK}'"
    connection = await aiomysql.connect(
        host=LOOPBACK, port=server.port, user=SUPERUSER, password=server.password, autocommit=True, connect_timeout=10
    )
    try:
        async with connection.cursor() as cursor:
            await cursor.execute("SELECT 1 FROM mysql.user WHERE user = %s AND host = %s", (NAME, LOOPBACK))
            verb = "ALTER" if await cursor.fetchone() else "CREATE"
            await cursor.execute(f"{verb} USER {account} IDENTIFIED BY '{password}'")
            for grant in administrator_grants(server.flavour, account):
                await cursor.execute(grant)
    finally:
        await connection.ensure_closed()
    return AdminAddress(host=LOOPBACK, port=server.port, user=NAME, password=password, tls=server.tls)
