"""Scripts that have the server read something else than what was judged: found out after the statement that does so."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from app.blueprints.applications import running
from app.blueprints.applications.records import find
from app.core.ids import marker
from app.databases import records as databases
from app.databases.passwords import password_place
from app.engines.base import Tenant
from app.engines.scripts import ScriptSession
from app.hosts.adapters import Adapters
from tests.applications.support import applied, ask, saved, seen, tables
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.store import store

CHANGES_POSTGRES = {
    "a name put together": "SELECT set_config(concat('standard_', 'conforming_strings'), 'off', false);",
    "a block": "DO $$ BEGIN EXECUTE 'SET standard_' || 'conforming_strings = off'; END $$;",
    "a prepared statement": (
        "PREPARE p AS SELECT set_config(concat('standard_', 'conforming_strings'), 'off', true); EXECUTE p;"
    ),
    "a function that was there": "SELECT innocent();",
    "a default that was there": "INSERT INTO trap DEFAULT VALUES;",
    "an encoding": "SELECT set_config(concat('client_', 'encoding'), 'latin1', false);",
}
BEFORE_POSTGRES = """
CREATE FUNCTION innocent() RETURNS text LANGUAGE plpgsql AS $$
BEGIN EXECUTE 'SET standard_' || 'conforming_strings = off'; RETURN ''; END $$;
CREATE TABLE trap (t text DEFAULT innocent());
"""
ESCAPING_POSTGRES = "CREATE TABLE proof(i int); SELECT 'a\\''; COMMIT; BEGIN; --'"

BEFORE_MYSQL = """
CREATE TABLE kept (i int);
CREATE PROCEDURE opens() BEGIN START TRANSACTION; INSERT INTO kept VALUES (1); END;
CREATE PROCEDURE switches() BEGIN SET @@autocommit = 0; END;
CREATE PROCEDURE releases() BEGIN SET @s = CONCAT('SELECT RELEASE_', 'ALL_LOCKS()'); PREPARE p FROM @s; EXECUTE p; END;
"""
CHANGES_MYSQL = {
    "escapes": ("SET sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH', '_ESCAPES'); SET @x = 'a\\', autocommit = 0 -- ';"),
    "quotes": "SET sql_mode = CONCAT(@@sql_mode, ',AN', 'SI_QUOTES'); SET @x = 'a';",
    "an encoding": "SET character_set_client = (SELECT CONCAT('g', 'bk'));",
    "a transaction": "CALL opens();",
    "autocommit": "CALL switches();",
    "the lock": "CALL releases();",
}


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("change", CHANGES_POSTGRES)
async def test_the_transaction_stays_ours(caller: Caller, change: str, dry_run: bool) -> None:
    database = await caller.created(db_type="postgres")
    assert (await applied(caller, database, BEFORE_POSTGRES))["status"] == "completed"
    application = await applied(caller, database, CHANGES_POSTGRES[change] + ESCAPING_POSTGRES, dry_run=dry_run)
    assert application["status"] == "failed", application
    assert "changes how the rest of the script is read" in application["error_message"]
    assert "proof" not in await tables(database)
    assert "proof" not in str([entry for entry in application["execution_log"] if entry["status"] == "succeeded"])


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("change", CHANGES_MYSQL)
async def test_what_runs_lasts_and_is_what_was_judged(caller: Caller, change: str, dry_run: bool) -> None:
    """Found out on the copy, so that the database isn't touched."""
    database = await caller.created(db_type="mysql")
    assert (await applied(caller, database, BEFORE_MYSQL))["status"] == "completed"
    script = CHANGES_MYSQL[change] + " CREATE TABLE proof (i int);"
    application = await applied(caller, database, script, dry_run=dry_run)
    assert application["status"] == "failed", application
    assert "Nothing was changed." in application["error_message"]
    assert await tables(database) == ["kept"]


async def test_what_only_the_database_opens_is_in_doubt(caller: Caller) -> None:
    """The copy has no rows, so the procedure does nothing there; in the database it leaves a transaction open, which
    ends with the session."""
    database = await caller.created(db_type="mysql")
    before = (
        "CREATE TABLE kept (i int); INSERT INTO kept VALUES (1);"
        "CREATE PROCEDURE opens() BEGIN IF EXISTS (SELECT * FROM kept) THEN"
        " START TRANSACTION; INSERT INTO kept VALUES (2); END IF; END;"
    )
    assert (await applied(caller, database, before))["status"] == "completed"
    application = await applied(caller, database, "CREATE TABLE a (i int); CALL opens(); CREATE TABLE b (i int);")
    assert application["status"] == "failed"
    assert [entry["status"] for entry in application["execution_log"]] == ["succeeded", "unknown", "skipped"]
    assert "may or may not have run" in application["error_message"]
    assert await tables(database) == ["a", "kept"]


async def test_a_script_is_saved_as_it_is(caller: Caller) -> None:
    """None of these is told from its text: it is the session that finds them out."""
    for script in (*CHANGES_POSTGRES.values(), *CHANGES_MYSQL.values()):
        assert await saved(caller, script)


class Misread(ScriptSession):
    """A session whose server finds a COMMIT before the second statement, where nobody has judged one."""

    def __init__(self, inner: ScriptSession) -> None:
        self._inner = inner
        self._count = 0

    async def begin(self) -> str:
        return await self._inner.begin()

    async def run(self, statement: str, seconds: float) -> int | None:
        self._count += 1
        if self._count == 2:
            await self._inner.run("COMMIT AND CHAIN", seconds)
        return await self._inner.run(statement, seconds)

    async def commit(self) -> None:
        await self._inner.commit()

    async def roll_back(self, *, checked: bool) -> None:
        await self._inner.roll_back(checked=checked)


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("last", ["SELECT 1", "SELECT 1 / 0"])
async def test_a_transaction_that_is_not_ours_any_more(
    service: RunningService, caller: Caller, monkeypatch: pytest.MonkeyPatch, dry_run: bool, last: str
) -> None:
    """Whatever let the COMMIT through: the record doesn't say that nothing was changed."""
    database = await caller.created(db_type="postgres")
    async with store(service.control_dsn):
        adapters = Adapters(service.box)
        record = await databases.find(UUID(database["uuid"]))
        assert record is not None
        assert record.password_sealed is not None
        password = service.box.open(record.password_sealed, password_place(record.uuid))
        tenant = Tenant(name=record.engine_name, password=password, marker=marker(record.uuid))
        adapter = await adapters.of_host(record.host_id)
        open_session = adapter.script_session

        @asynccontextmanager
        async def misread(tenant: Tenant, seconds: float) -> AsyncIterator[ScriptSession]:
            async with open_session(tenant, seconds) as session:
                yield Misread(session)

        monkeypatch.setattr(adapter, "script_session", misread)
        script = f"CREATE TABLE proof (i int); CREATE TABLE other (i int); {last}"
        async with service.frozen("worker"):
            asked = await ask(caller, database, script, dry_run=dry_run, wait=False)
            application = await find(asked["id"])
            assert application is not None
            await running.carry_out(service.box, adapter, tenant, application, may_run=True)
        await adapters.close()
    application = await seen(caller, asked)
    assert application["status"] == "failed", application
    assert "What of the script was committed is unknown" in application["error_message"]
    assert [entry["status"] for entry in application["execution_log"]][:2] == ["unknown", "unknown"]
    assert "proof" in await tables(database)
