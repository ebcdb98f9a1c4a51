"""The service's account on a test's engine host: no superuser, as on a managed server."""

import asyncpg

from app.engines.base import AdminAddress
from app.engines.mysql import administrator_grants
from app.engines.postgres import make_template
from app.local.mysql_data import Flavour
from tests.mysql_client import query
from tests.servers import RunningServer

_NAME = "service_provisioner"


async def postgres_provisioner(server: RunningServer, password: str, name: str = _NAME) -> AdminAddress:
    """A role that may make databases and roles, and nothing else."""
    connection = await asyncpg.connect(server.admin_dsn)
    try:
        await make_template(connection, {"dsn": server.admin_dsn})
        if not await connection.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", name):
            await connection.execute(f"CREATE ROLE {name} LOGIN CREATEDB CREATEROLE")
        await connection.execute(
            f"""
            ALTER ROLE {name} PASSWORD '{password}';
            GRANT SET ON PARAMETER temp_file_limit TO {name};
            REVOKE CONNECT, TEMPORARY ON DATABASE postgres, template1 FROM PUBLIC;
            GRANT CONNECT ON DATABASE postgres TO {name};
            """
        )
    finally:
        await connection.close()
    return AdminAddress(
        host=server.host, port=server.port, user=name, password=password, database="postgres", tls=server.tls
    )


async def mysql_provisioner(server: RunningServer, password: str, name: str = _NAME) -> AdminAddress:
    """An account with the grants that the adapter needs."""
    account = f"'{name}'@'{server.host}'"
    flavour: Flavour = "mariadb" if server.flavour == "mariadb" else "mysql"
    # Another test may have created it; a warning that it exists would be an error here.
    if not await query(server, f"SELECT 1 FROM mysql.user WHERE user = '{name}' AND host = '{server.host}'"):
        await query(server, f"CREATE USER {account}")
    await query(server, f"ALTER USER {account} IDENTIFIED BY '{password}'")
    for grant in administrator_grants(flavour, account):
        await query(server, grant)
    return AdminAddress(host=server.host, port=server.port, user=name, password=password, tls=server.tls)
