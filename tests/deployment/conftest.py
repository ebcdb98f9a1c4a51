"""Engine hosts that are set up by the deployment's own files."""

import os
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio

from app.engines.base import AdminAddress
from app.engines.postgres import extensions, guard
from app.local.postgres import find_programs
from tests import servers
from tests.deployment import compose
from tests.servers import RunningServer

PROVISIONER = "headwater_provisioner"
PASSWORD = "provisionerPassw0rd"
CONNECTIONS = 60
"""Fewer than the deployment's: few enough to use them all up."""


def run_mysql_script(password: str) -> subprocess.CompletedProcess[str]:
    """Sources the script as MySQL's image does; what it would send to the server comes out instead."""
    script = compose.ROOT / "deploy/mysql/provisioner.sh"
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", f"docker_process_sql() {{ cat; }}; . {script}"],
        env={"PROVISIONER_PASSWORD": password, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def mysql_statements() -> list[str]:
    return [one.strip() for one in run_mysql_script(PASSWORD).stdout.split(";\n") if one.strip()]


@dataclass(frozen=True)
class DeployedPostgres:
    server: RunningServer
    administrator: AdminAddress
    connections: int = CONNECTIONS

    def provision(self, password: str | None = PASSWORD, listed: str = "") -> subprocess.CompletedProcess[str]:
        """Runs the script as the image does at a first start, but over TCP."""
        script = compose.ROOT / "deploy/postgres/provisioner.sql"
        argv = [find_programs(None) / "psql", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-f", script]
        environ = {name: value for name, value in os.environ.items() if name != "PROVISIONER_PASSWORD"}
        environ["GUARD_SCRIPT"] = str(guard.SCRIPT)
        environ["EXTENSIONS_SCRIPT"] = str(extensions.SCRIPT)
        environ["POSTGRES_EXTENSIONS"] = listed
        environ |= {} if password is None else {"PROVISIONER_PASSWORD": password}
        return subprocess.run(
            [*map(str, argv), self.server.admin_dsn], env=environ, capture_output=True, text=True, check=False
        )

    async def use_pg_hba(self) -> None:
        """Puts the deployment's rules in force, TLS apart: this server has none. No superuser logs in from then on."""
        connection = await asyncpg.connect(self.server.admin_dsn)
        try:
            _write_rules(Path(await connection.fetchval("SHOW hba_file")))
            assert not await connection.fetch("SELECT error FROM pg_hba_file_rules WHERE error IS NOT NULL")
            await connection.execute("SELECT pg_reload_conf()")
        finally:
            await connection.close()


def _write_rules(target: Path) -> None:
    rules = (compose.ROOT / "deploy/postgres/pg_hba.conf").read_text()
    target.write_text(rules.replace("hostssl ", "host    "))


@pytest_asyncio.fixture(scope="module")
async def deployed_postgres(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DeployedPostgres]:
    """A server with the settings that the compose file gives to an engine host, and its administrator."""
    settings = compose.options(compose.services()["postgres-us-east-1"])
    del settings["hba_file"]
    folder = tmp_path_factory.mktemp("deployed-postgres")
    async with servers.postgres(
        folder, **settings | {"log_statement": "none", "max_connections": str(CONNECTIONS)}
    ) as server:
        administrator = AdminAddress(
            host=server.host, port=server.port, user=PROVISIONER, password=PASSWORD, database="postgres", tls=server.tls
        )
        yield DeployedPostgres(server, administrator)
