"""On MySQL and MariaDB an account sees the databases that it may use: its own, and the server's own descriptions."""

import pytest

from app.core.ids import engine_password
from app.engines.base import Tenant
from app.engines.mysql.readers import reader_name
from tests.engines.harness import EngineHost, Session, refusal, session_of, tenants

pytestmark = pytest.mark.parametrize("engine_server", ["mysql", "oracle"], indirect=True, scope="session")

_DESCRIPTIONS = {"information_schema", "performance_schema"}
_LISTS = (
    "SHOW DATABASES",
    "SELECT schema_name FROM information_schema.schemata",
    "SELECT DISTINCT table_schema FROM information_schema.tables",
    "SELECT DISTINCT table_schema FROM information_schema.columns",
)


async def seen(session: Session, statement: str) -> set[str]:
    return {str(row[0]).lower() for row in await session.run(statement)} - _DESCRIPTIONS


async def check(session: Session, own: Tenant, neighbour: Tenant) -> None:
    for statement in _LISTS:
        assert await seen(session, statement) == {own.name}, statement
    assert await session.run(f"SHOW DATABASES LIKE '{neighbour.name}'") == []
    for statement in ("USE {}", "SHOW TABLES FROM {}", "SHOW CREATE DATABASE {}", "SELECT * FROM {}.notes"):
        assert await refusal(session, statement.format(neighbour.name)) is not None, statement
    for system in ("mysql", "headwater", "sys"):
        assert await refusal(session, f"SHOW TABLES FROM {system}") is not None


async def test_an_account_sees_its_own_database_alone(host: EngineHost) -> None:
    async with tenants(host, 2) as [one, other]:
        async with session_of(host, other) as session:
            await session.run("CREATE TABLE notes (n int)")
        async with session_of(host, one) as session:
            await session.run("CREATE TABLE notes (n int)")
            await check(session, one, other)
        password = engine_password()
        await host.adapter.make_reader(one, password)
        reader = Tenant(name=reader_name(one.name), password=password, marker=one.marker)
        session = await host.login(reader, database=one.name)
        await check(session, one, other)
        await session.close()
        await host.adapter.freeze(one)
        async with session_of(host, one) as session:
            await check(session, one, other)
        await host.adapter.revoke(one)
        await host.adapter.restore(one, frozen=True)
        async with session_of(host, one) as session:
            await check(session, one, other)


async def test_the_servers_of_the_service_let_every_account_ask(host: EngineHost) -> None:
    session = await host.root()
    rows = await session.run("SHOW GLOBAL VARIABLES LIKE 'skip_show_database'")
    await session.close()
    assert rows == [("skip_show_database", "OFF")]
