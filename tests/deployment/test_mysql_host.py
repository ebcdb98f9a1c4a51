"""A MySQL engine host as the deployment sets it up: its script and its options, on Oracle's server where one is
given."""

import asyncio
import re
import subprocess
from pathlib import Path

import pytest

from app.core.ids import engine_name
from app.engines.base import AdminAddress, EngineLimits, Tenant
from app.engines.mysql import MySQLAdapter, administrator_grants
from app.local.service_user import service_user
from tests import servers
from tests.deployment import compose
from tests.deployment.conftest import PASSWORD, PROVISIONER, mysql_statements, run_mysql_script
from tests.mysql_client import query
from tests.servers import RunningServer


def test_its_administrator_gets_what_the_adapter_asks_for_and_no_more() -> None:
    grants = [statement for statement in mysql_statements() if statement.startswith("GRANT")]
    assert grants == list(administrator_grants("mysql", f"'{PROVISIONER}'@'%'"))


@pytest.mark.parametrize("password", ["", "it's", "$(id)", "a b"])
def test_a_password_that_would_not_survive_is_refused(password: str) -> None:
    run = run_mysql_script(password)
    assert run.returncode != 0
    assert run.stdout == ""
    assert "PROVISIONER_PASSWORD" in run.stderr


@pytest.mark.filterwarnings("ignore:.*already exists")  # the second run of a script that may run again
async def test_its_administrator_is_fit_and_works(oracle_mysql_server: RunningServer) -> None:
    for _ in range(2):
        for statement in mysql_statements():
            await query(oracle_mysql_server, statement)
    account = AdminAddress(
        host=oracle_mysql_server.host,
        port=oracle_mysql_server.port,
        user=PROVISIONER,
        password=PASSWORD,
        tls=oracle_mysql_server.tls,
    )
    name = engine_name()
    tenant = Tenant(name=name, password=f"password{name}", marker=f"headwater:{name}")
    adapter = MySQLAdapter(account)
    try:
        assert await adapter.harden_host() == ()
        assert (await adapter.inspect_host()).shortcomings == ()
        await adapter.create(tenant, EngineLimits(connections=10))
        await adapter.verify_login(tenant)
        await adapter.destroy(tenant)
    finally:
        await adapter.close()
        await query(oracle_mysql_server, f"DROP USER '{PROVISIONER}'@'%'")


async def test_its_options_are_known_to_the_server(tmp_path: Path) -> None:
    program = await servers.oracle_mysqld()
    options = compose.command(compose.services()["mysql-us-east-1"])[1:]
    user = service_user(tmp_path, program, death_signal="KILL")
    argv = [*user.prefix, str(program), "--no-defaults", "--validate-config", f"--datadir={tmp_path}", *options]
    run = await asyncio.to_thread(subprocess.run, argv, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert not re.search(r"unknown (option|variable)", run.stderr)
