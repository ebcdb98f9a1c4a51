"""A tenant's script leaves no doubt about what became of it, whenever its worker dies."""

import pytest

from app.engines.base import HostUnavailable
from app.engines.errors import StatementFailed, StatementUncertain
from app.engines.scripts import ScriptEnd, ScriptSession
from tests.engines.harness import EngineHost, as_root, session_of, tenants
from tests.support.waiting import until

SECONDS = 30.0


async def tables(host: EngineHost, tenant: object) -> list[str]:
    async with session_of(host, tenant) as session:  # type: ignore[arg-type]
        rows = await session.run(
            "SELECT table_name FROM information_schema.tables WHERE table_schema NOT IN"
            " ('information_schema', 'pg_catalog', 'mysql', 'performance_schema', 'sys') ORDER BY 1"
        )
    return [str(row[0]) for row in rows]


async def test_a_script_that_is_committed(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        async with host.adapter.script_session(tenant, SECONDS) as session:
            reference = await session.begin()
            assert await session.run("CREATE TABLE pets (name varchar(20))", SECONDS) in (None, 0)
            assert await session.run("INSERT INTO pets VALUES ('Rex'), ('Tom')", SECONDS) == 2
            assert await session.run("SELECT '%s', name FROM pets", SECONDS) == 2
            await session.commit()
        assert await tables(host, tenant) == ["pets"]
        transactional = host.adapter.transactional_scripts
        assert await host.adapter.end_script(reference) is (ScriptEnd.COMMITTED if transactional else ScriptEnd.UNKNOWN)


async def test_a_script_whose_worker_dies(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        async with host.adapter.script_session(tenant, SECONDS) as session:
            reference = await session.begin()
            await session.run("CREATE TABLE pets (name varchar(20))", SECONDS)
        transactional = host.adapter.transactional_scripts
        assert await host.adapter.end_script(reference) is (ScriptEnd.UNDONE if transactional else ScriptEnd.UNKNOWN)
        assert await tables(host, tenant) == ([] if transactional else ["pets"])


async def test_the_session_of_a_worker_that_was_given_up_on_is_ended(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        async with host.adapter.script_session(tenant, SECONDS) as session:
            reference = await session.begin()
            await session.run("CREATE TABLE pets (name varchar(20))", SECONDS)
            end = await host.adapter.end_script(reference)
            assert end is not ScriptEnd.COMMITTED
            with pytest.raises(HostUnavailable):
                await session.run("INSERT INTO pets VALUES ('Rex')", SECONDS)
        # Another session of the tenant's is none of its business.
        async with session_of(host, tenant) as bystander:
            await host.adapter.end_script(reference)
            await bystander.run("SELECT 1")


async def test_a_refused_statement_says_why(host: EngineHost) -> None:
    async with tenants(host) as [tenant], host.adapter.script_session(tenant, SECONDS) as session:
        await session.begin()
        with pytest.raises(StatementFailed, match="nowhere") as refused:
            await session.run("INSERT INTO nowhere VALUES (1)", SECONDS)
        assert refused.value.code in ("42P01", "1146")


async def test_one_statement_a_call(host: EngineHost) -> None:
    async with tenants(host) as [tenant], host.adapter.script_session(tenant, SECONDS) as session:
        await session.begin()
        with pytest.raises(StatementFailed):
            await session.run("CREATE TABLE a (n integer); COMMIT; CREATE TABLE b (n integer)", SECONDS)
        assert await tables(host, tenant) == []


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT set_config('standard_conforming_strings', 'off', false)",
        "SET LOCAL standard_conforming_strings = off",
        "DO $$ BEGIN EXECUTE 'SET standard_' || 'conforming_strings = off'; END $$",
        "SET client_encoding = LATIN1",
    ],
)
async def test_a_statement_that_changes_the_reading_on_postgresql(host: EngineHost, statement: str) -> None:
    if not host.adapter.transactional_scripts:
        pytest.skip("other settings do so here")
    async with tenants(host) as [tenant], host.adapter.script_session(tenant, SECONDS) as session:
        await session.begin()
        with pytest.raises(StatementFailed, match="changes how the rest"):
            await session.run(statement, SECONDS)
        with pytest.raises(StatementFailed, match="changes how the rest"):
            await session.run("SELECT 1", SECONDS)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "COMMIT AND CHAIN"])
async def test_a_statement_that_ends_the_transaction(host: EngineHost, end: str) -> None:
    if not host.adapter.transactional_scripts:
        pytest.skip("scripts are no transactions here")
    async with tenants(host) as [tenant], host.adapter.script_session(tenant, SECONDS) as session:
        reference = await session.begin()
        await session.run("CREATE TABLE a (n integer)", SECONDS)

        async def go_on() -> None:
            await session.run(end, SECONDS)
            await session.commit()

        with pytest.raises(StatementUncertain, match="ended the transaction"):
            await go_on()
        committed = end != "ROLLBACK"
        assert await host.adapter.end_script(reference) is (ScriptEnd.COMMITTED if committed else ScriptEnd.UNDONE)


async def begun(session: ScriptSession, *statements: str) -> None:
    await session.begin()
    for statement in statements:
        await session.run(statement, SECONDS)


@pytest.mark.parametrize(
    "statement",
    [
        "SET sql_mode = CONCAT(@@sql_mode, ',ANSI_', 'QUOTES')",
        "SET @@session.sql_mode = CONCAT('NO_BACKSLASH', '_ESCAPES')",
        "SET NAMES gbk",
        "SET character_set_client = sjis",
    ],
)
async def test_a_statement_that_changes_the_reading_on_mysql(host: EngineHost, statement: str) -> None:
    if host.adapter.transactional_scripts:
        pytest.skip("other settings do so here")
    async with tenants(host) as [tenant], host.adapter.script_session(tenant, SECONDS) as session:
        await session.begin()
        with pytest.raises(StatementFailed, match="changes how the rest"):
            await session.run(statement, SECONDS)


@pytest.mark.parametrize(
    "statement",
    [
        "SET autocommit = 0",
        "START TRANSACTION",
        "XA START 'a'",
        "CALL hidden()",
        "SELECT RELEASE_ALL_LOCKS()",
    ],
)
async def test_a_statement_whose_effects_may_not_last(host: EngineHost, statement: str) -> None:
    if host.adapter.transactional_scripts:
        pytest.skip("nothing lasts here before the end")
    procedure = "CREATE PROCEDURE hidden () BEGIN START TRANSACTION; INSERT INTO a VALUES (1); END"
    async with tenants(host) as [tenant], host.adapter.script_session(tenant, SECONDS) as session:
        await begun(session, "CREATE TABLE a (n integer)", procedure)
        with pytest.raises(StatementUncertain):
            await session.run(statement, SECONDS)


@pytest.mark.parametrize(
    "statement",
    [
        "SET character_set_results = utf16",
        "SET @@session.character_set_results = 'utf32'",
        "SET sql_select_limit = 0",
        "CALL hidden()",
    ],
)
async def test_a_statement_after_which_answers_cant_be_read(host: EngineHost, statement: str) -> None:
    if host.adapter.transactional_scripts:
        pytest.skip("other settings are refused here")
    procedure = "CREATE PROCEDURE hidden () BEGIN SET character_set_results = ucs2; END"
    async with tenants(host) as [tenant], host.adapter.script_session(tenant, SECONDS) as session:
        await begun(session, procedure)
        with pytest.raises(StatementUncertain, match="can't be read"):
            await session.run(statement, SECONDS)


async def test_characters_that_the_server_would_take_for_others(host: EngineHost) -> None:
    if host.adapter.transactional_scripts:
        pytest.skip("another encoding is refused altogether here")
    async with tenants(host) as [tenant], host.adapter.script_session(tenant, SECONDS) as session:
        await begun(session, "SET NAMES latin1", "SELECT 'plain'")
        with pytest.raises(StatementFailed, match="character_set_client is latin1"):
            await session.run("SELECT 'ä'", SECONDS)
        await session.run("SET NAMES utf8mb4", SECONDS)
        await session.run("SELECT 'ä'", SECONDS)


async def test_a_statement_that_takes_too_long(host: EngineHost) -> None:
    slow = "SELECT pg_sleep(20)" if host.adapter.transactional_scripts else "SELECT SLEEP(20)"
    async with tenants(host) as [tenant], host.adapter.script_session(tenant, SECONDS) as session:
        reference = await session.begin()
        with pytest.raises((StatementFailed, StatementUncertain), match="took longer than 1 s"):
            await session.run(slow, 1)
        await host.adapter.end_script(reference)


async def test_warnings_are_printed_nowhere(host: EngineHost) -> None:
    """They may quote a secret. Here a printed one is an error."""
    if host.adapter.transactional_scripts:
        pytest.skip("warnings are not asked for here")
    async with tenants(host) as [tenant], host.adapter.script_session(tenant, SECONDS) as session:
        await session.begin()
        await session.run("SET SESSION sql_mode = ''", SECONDS)
        await session.run("CREATE TABLE pets (name varchar(2))", SECONDS)
        assert await session.run("INSERT INTO pets VALUES ('Rex')", SECONDS) == 1
        assert await session.run("SELECT CAST('Rex' AS signed)", SECONDS) == 1


async def test_a_dry_run_meets_what_a_commit_would(host: EngineHost) -> None:
    if not host.adapter.transactional_scripts:
        pytest.skip("scripts are no transactions here")
    async with tenants(host) as [tenant]:
        async with host.adapter.script_session(tenant, SECONDS) as session:
            await session.begin()
            await session.run(
                "CREATE TABLE pets (id int PRIMARY KEY, of int REFERENCES pets DEFERRABLE INITIALLY DEFERRED)", SECONDS
            )
            await session.run("INSERT INTO pets VALUES (1, 2)", SECONDS)
            with pytest.raises(StatementFailed, match="foreign key"):
                await session.roll_back(checked=True)
            await session.roll_back(checked=False)
        assert await tables(host, tenant) == []


async def test_a_session_that_the_script_ends(host: EngineHost) -> None:
    suicide = "SELECT pg_terminate_backend(pg_backend_pid())" if host.adapter.transactional_scripts else "DO 0"
    async with tenants(host) as [tenant], host.adapter.script_session(tenant, SECONDS) as session:
        await session.begin()
        if not host.adapter.transactional_scripts:
            async with session_of(host, tenant) as other:
                [(number,)] = await other.run(
                    "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID()"
                )
                await other.run(f"KILL {number}")
            await until(lambda: _none_of(host, number))
        with pytest.raises(HostUnavailable):
            await session.run(suicide, SECONDS)


async def _none_of(host: EngineHost, number: int) -> bool:
    return not await as_root(host, f"SELECT 1 FROM information_schema.processlist WHERE id = {number}")


async def test_a_schema_is_copied_without_its_data(host: EngineHost) -> None:
    if host.adapter.transactional_scripts:
        pytest.skip("nothing needs a copy here")
    schema = (
        "CREATE TABLE owners (id int PRIMARY KEY AUTO_INCREMENT, name varchar(20) DEFAULT 'it''s %s')",
        "CREATE TABLE pets (id int PRIMARY KEY, owner_id int, FOREIGN KEY (owner_id) REFERENCES owners (id))",
        "CREATE VIEW zz_named AS SELECT name FROM owners",
        "CREATE VIEW aa_named AS SELECT * FROM zz_named",
        "CREATE FUNCTION twice (n int) RETURNS int DETERMINISTIC RETURN n * 2",
        "CREATE PROCEDURE fill () BEGIN INSERT INTO owners (name) VALUES ('Ann'); END",
        "CREATE TRIGGER named BEFORE INSERT ON owners FOR EACH ROW SET NEW.name = CONCAT(NEW.name, '!')",
        "INSERT INTO owners (name) VALUES ('Bea')",
    )
    async with tenants(host, 2) as [source, target]:
        async with session_of(host, source) as session:
            for statement in schema:
                await session.run(statement)
        assert await host.adapter.copy_schema(source, target) == []
        assert await tables(host, target) == ["aa_named", "owners", "pets", "zz_named"]
        async with session_of(host, target) as session:
            assert await session.run("SELECT count(*) FROM owners") == [(0,)]
            await session.run("CALL fill()")
            assert await session.run("SELECT name FROM aa_named") == [("Ann!",)]
            assert await session.run("SELECT twice(4)") == [(8,)]
