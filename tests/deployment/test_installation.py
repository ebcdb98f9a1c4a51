"""A service on engine hosts with the deployment's own accounts, settings and rules: databases are made there, and
questions about them answered."""

import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import aiomysql
import asyncpg
import pymysql
import pytest
import pytest_asyncio

from app.contracts.base import Engine
from app.engines.base import AdminAddress
from app.engines.tls import TlsMode, TlsPolicy, certificates
from app.local.temporal import TemporalService
from tests import servers
from tests.deployment import compose
from tests.deployment.conftest import PASSWORD, PROVISIONER, DeployedPostgres, mysql_statements
from tests.mysql_client import query
from tests.queries.conftest import Asked, database_of
from tests.servers import RunningServer
from tests.support.answers import body_of
from tests.support.model_server import sql
from tests.support.namespaces import new_namespace
from tests.support.service import RunningService, running_service
from tests.support.waiting import LIMIT_SECONDS

_ENCRYPTED = "--require-secure-transport=ON"
_VISITS = ("CREATE TABLE visits (n int)", "INSERT INTO visits VALUES (7)")


@pytest_asyncio.fixture(scope="module")
async def deployed_mysql(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    """Oracle's server with the options and the administrator of the compose file."""
    program, folder = await servers.oracle_mysqld(), tmp_path_factory.mktemp("deployed-mysql")
    [_, *options] = compose.command(compose.services()["mysql-us-east-1"])
    # Whoever looks whether it has started does so without TLS: this one comes into force when it has.
    options.remove(_ENCRYPTED)
    async with servers.mysql(folder, program, *options) as server:
        for statement in mysql_statements():
            await query(server, statement)
        await query(server, "SET GLOBAL require_secure_transport = ON")
        authority = certificates((folder / "data-mysql" / "ca.pem").read_text())
        yield replace(server, tls=TlsPolicy(mode=TlsMode.REQUIRE, ca=authority))


def _administrator(server: RunningServer) -> AdminAddress:
    return AdminAddress(host=server.host, port=server.port, user=PROVISIONER, password=PASSWORD, tls=server.tls)


@pytest_asyncio.fixture(scope="module")
async def on_postgres(
    tmp_path_factory: pytest.TempPathFactory,
    control_server: RunningServer,
    temporal_server: TemporalService,
    deployed_postgres: DeployedPostgres,
) -> AsyncIterator[RunningService]:
    run = deployed_postgres.provision()
    assert run.returncode == 0, run.stderr
    await deployed_postgres.use_pg_hba()
    folder, admins = tmp_path_factory.mktemp("service"), {Engine.POSTGRES: deployed_postgres.administrator}
    server = deployed_postgres.server
    namespace = await new_namespace(temporal_server)
    async with running_service(
        folder, control_server, temporal_server, server, None, admins, namespace=namespace
    ) as service:
        yield service


@pytest_asyncio.fixture(scope="module")
async def on_mysql(
    tmp_path_factory: pytest.TempPathFactory,
    control_server: RunningServer,
    temporal_server: TemporalService,
    deployed_postgres: DeployedPostgres,
    deployed_mysql: RunningServer,
) -> AsyncIterator[RunningService]:
    folder, admins = tmp_path_factory.mktemp("service"), {Engine.MYSQL: _administrator(deployed_mysql)}
    server = deployed_postgres.server
    namespace = await new_namespace(temporal_server)
    async with running_service(
        folder, control_server, temporal_server, server, deployed_mysql, admins, namespace=namespace
    ) as service:
        yield service


async def _answer(asked: Asked, text: str, kind: str = "read") -> dict[str, Any]:
    """Raises where the answer isn't 200."""
    result: dict[str, Any] = body_of(await asked.ask(sql(text, kind)))["result"]
    return result


async def test_questions_on_postgresql_are_answered(on_postgres: RunningService) -> None:
    asked = await database_of(on_postgres, "postgres", tables=_VISITS)
    assert (await _answer(asked, "SELECT n FROM visits"))["rows"] == [{"n": 7}]
    assert (await _answer(asked, "INSERT INTO visits VALUES (8)", "write"))["affectedRows"] == 1
    assert (await _answer(asked, "SELECT n FROM visits ORDER BY n"))["rows"] == [{"n": 7}, {"n": 8}]


async def test_a_tenant_on_postgresql_enters_its_own_database_alone(on_postgres: RunningService) -> None:
    one = await database_of(on_postgres, "postgres", tables=_VISITS)
    other = await database_of(on_postgres, "postgres", tables=_VISITS)
    own, foreign = (urlsplit(asked.database["connection_string"]) for asked in (one, other))
    for database in (foreign.path, "/postgres", "/template1", "/headwater_template"):
        with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError, match=r"pg_hba\.conf rejects"):
            await asyncpg.connect(own._replace(path=database).geturl(), timeout=LIMIT_SECONDS)


async def test_questions_on_mysql_are_answered(on_mysql: RunningService, deployed_mysql: RunningServer) -> None:
    asked = await _on_mysql(on_mysql)
    await _run(deployed_mysql, asked, *_VISITS)
    assert (await _answer(asked, "SELECT n FROM visits"))["rows"] == [{"n": 7}]
    assert (await _answer(asked, "INSERT INTO visits VALUES (8)", "write"))["affectedRows"] == 1
    assert (await _answer(asked, "SELECT n FROM visits ORDER BY n"))["rows"] == [{"n": 7}, {"n": 8}]
    assert len((await _answer(asked, "SHOW TABLES"))["rows"]) == 1


async def test_a_tenant_on_mysql_sees_its_own_database_alone_and_encrypts(
    on_mysql: RunningService, deployed_mysql: RunningServer
) -> None:
    one, other = [await _on_mysql(on_mysql) for _ in range(2)]
    shown = {str(row[0]) for row in await _run(deployed_mysql, one, "SHOW DATABASES")}
    assert shown == {_name(one), "information_schema", "performance_schema"}
    for statement in (f"USE {_name(other)}", f"SHOW TABLES FROM {_name(other)}"):
        with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
            await _run(deployed_mysql, one, statement)
    with pytest.raises(pymysql.err.OperationalError, match="insecure transport"):
        await one.run("SELECT 1")


async def _on_mysql(service: RunningService) -> Asked:
    """Empty: what fills it elsewhere does so without TLS."""
    caller = await service.caller(tier="enterprise")
    return Asked(caller, await caller.created(db_type="mysql"))


def _name(asked: Asked) -> str:
    return str(urlsplit(asked.database["connection_string"]).path.lstrip("/"))


async def _run(server: RunningServer, asked: Asked, *statements: str) -> list[tuple[Any, ...]]:
    """As the tenant, over TLS; the rows of the last."""
    parts = urlsplit(asked.database["connection_string"])
    context: ssl.SSLContext | None = server.tls.context
    connection = await aiomysql.connect(
        host=parts.hostname,
        port=parts.port,
        user=parts.username,
        password=parts.password,
        db=_name(asked),
        autocommit=True,
        ssl=context,
    )
    try:
        async with connection.cursor() as cursor:
            for statement in statements:
                await cursor.execute(statement)
            return [tuple(row) for row in await cursor.fetchall()]
    finally:
        await connection.ensure_closed()
