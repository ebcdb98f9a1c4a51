"""On MySQL and MariaDB an account sees the databases that it may use: its own, and the server's own descriptions."""

from collections.abc import AsyncIterator

import pytest

from app.core.ids import engine_password
from app.engines.base import Tenant
from app.engines.mysql.readers import reader_name
from tests.engines.harness import EngineHost, RefusedError, Session, as_root, refusal, session_of, tenants

pytestmark = pytest.mark.parametrize("engine_server", ["mysql", "oracle"], indirect=True, scope="session")

_DESCRIPTIONS = {"information_schema", "performance_schema"}
_SYSTEM = ("mysql", "headwater", "sys")
_OF_SYSTEM = """
SELECT table_schema, table_name FROM information_schema.tables
WHERE table_schema IN ('information_schema', 'performance_schema', 'mysql', 'headwater', 'sys')
"""
_LISTS = (
    "SHOW DATABASES",
    "SHOW SCHEMAS",
    "SELECT schema_name FROM information_schema.schemata",
    "SELECT DISTINCT table_schema FROM information_schema.tables",
    "SELECT DISTINCT table_schema FROM information_schema.columns",
)
_OF_ALL = (
    "SHOW OPEN TABLES",
    "SHOW PROCESSLIST",
    "SHOW FULL PROCESSLIST",
    "SHOW PROCEDURE STATUS",
    "SHOW FUNCTION STATUS",
    "SHOW PACKAGE STATUS",
    "SHOW EVENTS",
    "SHOW TRIGGERS",
    "SHOW GRANTS",
    "SHOW GLOBAL STATUS",
    "SHOW GLOBAL VARIABLES",
    "SHOW ENGINE INNODB STATUS",
    "SHOW ENGINE INNODB MUTEX",
    "SHOW ENGINE PERFORMANCE_SCHEMA STATUS",
    "SHOW BINARY LOGS",
    "SHOW REPLICAS",
    "SHOW EXPLAIN FOR {session}",
    "EXPLAIN FOR CONNECTION {session}",
    "XA RECOVER",
)
"""About no database in particular. Each server lacks some."""
_OPEN = "SHOW OPEN TABLES"
_UNFILTERED = {
    "mariadb": set[str](),
    "mysql": {
        # Forgets to ask for rights behind the first open table that everybody may read.
        _OPEN,
        # Asks for none.
        "SELECT * FROM `information_schema`.`TABLESPACES_EXTENSIONS`",
    },
}
"""What shows every account the names of databases and tables, and nothing in them: with and without
`--skip-show-database`, and no right takes it away. Seen on MySQL 9.7."""
_OF_ONE = (
    "SHOW DATABASES LIKE '{name}'",
    "SHOW CREATE DATABASE {name}",
    "SHOW TABLES FROM {name}",
    "SHOW TABLE STATUS FROM {name}",
    "SHOW OPEN TABLES FROM {name} LIKE 'hidden%'",
    "SHOW OPEN TABLES FROM {name}",
    "SHOW TRIGGERS FROM {name}",
    "SHOW EVENTS FROM {name}",
    "SHOW PROCEDURE STATUS WHERE db = '{name}'",
    "SHOW COLUMNS FROM {name}.hidden_table",
    "SHOW INDEX FROM {name}.hidden_table",
    "SHOW CREATE TABLE {name}.hidden_table",
    "SHOW CREATE VIEW {name}.hidden_view",
    "SHOW CREATE TRIGGER {name}.hidden_trigger",
    "SHOW CREATE PROCEDURE {name}.hidden_procedure",
    "SHOW CREATE EVENT {name}.hidden_event",
    "DESCRIBE {name}.hidden_table",
    "EXPLAIN SELECT * FROM {name}.hidden_table",
    "SELECT * FROM {name}.hidden_table",
    "SELECT * FROM {name}.hidden_view",
    "SHOW GRANTS FOR '{name}'@'%'",
    "SHOW GRANTS FOR '{reader}'@'%'",
    "SHOW CREATE USER '{name}'@'%'",
)
_HIDDEN = (
    "CREATE TABLE hidden_table (hidden_column int PRIMARY KEY, other int, INDEX hidden_index (other))",
    "CREATE TABLE hidden_child (n int, CONSTRAINT hidden_key FOREIGN KEY (n) REFERENCES hidden_table (hidden_column))",
    "CREATE VIEW hidden_view AS SELECT * FROM hidden_table",
    "CREATE PROCEDURE hidden_procedure() SELECT 1",
    "CREATE FUNCTION hidden_function() RETURNS int DETERMINISTIC RETURN 1",
    "CREATE TRIGGER hidden_trigger BEFORE INSERT ON hidden_table FOR EACH ROW SET NEW.other = 1",
    "INSERT INTO hidden_table VALUES (1, 1)",
    "PREPARE hidden_statement FROM 'SELECT * FROM hidden_table'",
    "SET @hidden_variable = 'hidden_value'",
    "XA START 'hidden_branch'",
    "UPDATE hidden_table SET other = 2",
)
"""What a neighbour has, and is doing, in a session that stays open."""


async def rows_of(session: Session, statement: str) -> list[tuple[object, ...]]:
    """Nothing where the server refuses it, or doesn't know the statement or the table."""
    try:
        return await session.run(statement)
    except RefusedError:
        return []


async def seen(session: Session, statement: str) -> set[str]:
    return {str(row[0]).lower() for row in await session.run(statement)} - _DESCRIPTIONS


class Neighbours:
    """Databases beside one tenant's, and the statements that must not show them."""

    def __init__(self, members: list[Tenant], statements: list[str]) -> None:
        self._members, self._statements = members, statements

    async def stay_hidden(self, session: Session, own: Tenant) -> None:
        for statement in _LISTS:
            assert await seen(session, statement) == {own.name}, statement
        for one in self._members:
            assert await refusal(session, f"USE {one.name}") is not None
            for statement in _OF_ONE:
                text = statement.format(name=one.name, reader=reader_name(one.name))
                assert await rows_of(session, text) == [], text
        for system in _SYSTEM:
            assert await refusal(session, f"USE {system}") is not None, system
            assert await refusal(session, f"SHOW TABLES FROM {system}") is not None, system
        told = set()
        for text in self._statements:
            found = repr(await rows_of(session, text))
            if "hidden_" in found or any(one.name in found for one in self._members):
                told.add(text)
        assert told == set()


@pytest.fixture
async def neighbours(host: EngineHost) -> AsyncIterator[Neighbours]:
    """One with all that a database can hold, one without anything as in the pool."""
    async with tenants(host, 2) as [busy, pooled], session_of(host, busy) as session:
        await host.adapter.make_reader(busy, engine_password())
        for statement in _HIDDEN:
            await session.run(statement)
        await as_root(host, f"CREATE EVENT {busy.name}.hidden_event ON SCHEDULE EVERY 1 DAY DO SELECT 1")
        [(number,)] = await session.run("SELECT CONNECTION_ID()")
        # As its administrator sees them: what is hidden is there.
        listed = [(str(schema), str(table)) for schema, table in await as_root(host, _OF_SYSTEM)]
        assert {schema.lower() for schema, _ in listed} == _DESCRIPTIONS | set(_SYSTEM)
        for statement in (f"SHOW TRIGGERS FROM {busy.name}", f"SHOW EVENTS FROM {busy.name}", _OPEN):
            assert "hidden_" in repr(await as_root(host, statement)), statement
        statements = [statement.format(session=number) for statement in _OF_ALL]
        statements += [f"SELECT * FROM `{schema}`.`{table}`" for schema, table in listed]
        unfiltered = _UNFILTERED[host.flavour]
        yield Neighbours([busy, pooled], [statement for statement in statements if statement not in unfiltered])
        await session.run("XA END 'hidden_branch'")
        await session.run("XA ROLLBACK 'hidden_branch'")


async def test_an_account_sees_its_own_database_alone(host: EngineHost, neighbours: Neighbours) -> None:
    async with tenants(host) as [one]:
        async with session_of(host, one) as session:
            await session.run("CREATE TABLE notes (n int)")
            await neighbours.stay_hidden(session, one)
        await host.adapter.freeze(one)
        async with session_of(host, one) as session:
            await neighbours.stay_hidden(session, one)
        await host.adapter.revoke_access(one)
        with pytest.raises(RefusedError):
            await host.login(one)
        await host.adapter.restore_access(one, frozen=True)
        async with session_of(host, one) as session:
            await neighbours.stay_hidden(session, one)
        await host.adapter.thaw(one)
        async with session_of(host, one) as session:
            await neighbours.stay_hidden(session, one)


async def test_what_answers_questions_sees_that_database_alone(host: EngineHost, neighbours: Neighbours) -> None:
    async with tenants(host) as [one]:
        async with session_of(host, one) as session:
            await session.run("CREATE TABLE notes (n int)")
        password = engine_password()
        await host.adapter.make_reader(one, password)
        reader = Tenant(name=reader_name(one.name), password=password, marker=one.marker)
        session = await host.login(reader, database=one.name)
        await neighbours.stay_hidden(session, one)
        await session.close()


async def test_a_copy_for_a_dry_run_and_its_original_see_nothing_of_each_other(host: EngineHost) -> None:
    async with tenants(host, 2) as [one, copy]:
        async with session_of(host, one) as session:
            for statement in _HIDDEN[:6]:
                await session.run(statement.replace("hidden_", "shared_"))
        assert await host.adapter.copy_schema(one, copy) == []
        for own, other in ((one, copy), (copy, one)):
            async with session_of(host, own) as session:
                await Neighbours([other], []).stay_hidden(session, own)
                assert await seen(session, "SHOW TABLES") == {"shared_table", "shared_child", "shared_view"}


async def test_the_servers_of_the_service_let_every_account_ask(host: EngineHost) -> None:
    session = await host.root()
    rows = await session.run("SHOW GLOBAL VARIABLES LIKE 'skip_show_database'")
    await session.close()
    assert rows == [("skip_show_database", "OFF")]
