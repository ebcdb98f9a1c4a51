"""The recipes of the servers: what they leave open is what every tenant could use."""

import asyncio
import contextlib
from asyncio.subprocess import PIPE
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client

from app.local.postgres import DISCREET
from app.local.temporal import TemporalService
from tests.mysql_client import query
from tests.servers import RunningServer, postgres
from tests.support.waiting import until


async def test_postgres_has_one_account_with_a_scram_password(postgres_server: RunningServer) -> None:
    connection = await asyncpg.connect(postgres_server.admin_dsn)
    try:
        roles = await connection.fetch(
            "SELECT rolname, rolpassword FROM pg_authid WHERE rolcanlogin AND rolname = $1",
            postgres_server.user,
        )
        assert [row["rolpassword"].split("$")[0] for row in roles] == ["SCRAM-SHA-256"]
        settings = {
            name: await connection.fetchval(f"SHOW {name}")
            for name in ("max_prepared_transactions", "unix_socket_directories", "listen_addresses")
        }
    finally:
        await connection.close()
    assert settings == {
        "max_prepared_transactions": "0",
        "unix_socket_directories": "",
        "listen_addresses": "127.0.0.1",
    }


async def test_postgres_asks_for_the_password(postgres_server: RunningServer) -> None:
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(
            host=postgres_server.host, port=postgres_server.port, user=postgres_server.user, password="wrong"
        )


TALKATIVE = {"log_min_messages": "warning", "log_min_error_statement": "error"}
"""PostgreSQL's own defaults."""


@pytest.mark.parametrize(("settings", "told"), [(DISCREET, False), (TALKATIVE, True)])
async def test_what_a_tenants_statement_fails_with_is_in_no_log(
    tmp_path_factory: pytest.TempPathFactory, settings: dict[str, str], told: bool
) -> None:
    folder = tmp_path_factory.mktemp("discreet")
    folder.parent.chmod(0o755)
    async with postgres(folder, log_statement="none", **settings) as server:
        connection = await asyncpg.connect(server.admin_dsn)
        for statement in ("SELECT 'hush-1'::int", "DO $$ BEGIN RAISE WARNING 'hush-2'; END $$", "SELECT hush 3"):
            with contextlib.suppress(asyncpg.PostgresError):
                await connection.execute(statement)
        other, pid = await asyncpg.connect(server.admin_dsn), connection.get_server_pid()
        ending = asyncio.create_task(connection.execute("SELECT pg_sleep(60), 'hush-4'"))
        await until(lambda: other.fetchval("SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND state = 'active'", pid))
        await other.fetchval("SELECT pg_terminate_backend($1)", pid)
        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
            await ending
        await other.close()
        text = await asyncio.to_thread(server.log.read_text)
    assert ("hush" in text) == told
    assert "database system is ready" in text


async def test_mysql_has_one_account_and_no_test_database(mysql_server: RunningServer) -> None:
    await _check_mysql(mysql_server)


async def test_oracle_mysql_has_one_account_and_no_test_database(oracle_mysql_server: RunningServer) -> None:
    await _check_mysql(oracle_mysql_server)
    assert oracle_mysql_server.flavour == "mysql"


async def test_temporal_keeps_closed_workflows_for_three_days(temporal_server: TemporalService) -> None:
    client = await Client.connect(temporal_server.address)
    description = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
    assert description.config.workflow_execution_retention_ttl.ToTimedelta() >= timedelta(hours=72)


async def test_temporal_has_a_home_of_its_own(temporal_server: TemporalService) -> None:
    # It reads its settings there: those of whoever ran one before, under another user, would stop it.
    home = Path(temporal_server.command().environ["HOME"])
    assert home == temporal_server.log.parent
    (home / ".config/temporalio").mkdir(parents=True, exist_ok=True)
    (home / ".config/temporalio/temporal.yaml").write_text("env: {ours: {address: here}}")
    command = temporal_server.command()
    told = await asyncio.create_subprocess_exec(command.argv[0], "env", "list", env=command.environ, stdout=PIPE)
    assert b"ours" in (await told.communicate())[0]


async def _check_mysql(server: RunningServer) -> None:
    # Other tests make accounts of their own on it.
    accounts = await query(server, "SELECT user, host FROM mysql.user WHERE user IN ('', 'root')")
    assert accounts == [("root", "127.0.0.1")]
    assert await query(server, "SELECT 1 FROM information_schema.schemata WHERE schema_name LIKE 'test%'") == []
    assert await query(server, "SELECT db FROM mysql.db WHERE user = ''") == []
    variables = dict(await query(server, "SHOW GLOBAL VARIABLES"))
    expected = {
        "local_infile": "OFF",
        "event_scheduler": "OFF",
        "log_bin": "OFF",
        "skip_name_resolve": "ON",
        "bind_address": "127.0.0.1",
        "character_set_server": "utf8mb4",
        "max_connections": "1000",
    }
    assert {name: variables[name] for name in expected} == expected
