"""A worker that dies while it applies a blueprint applies nothing twice, and leaves nothing under way."""

from typing import Any
from uuid import UUID

import pytest

from app.core.ids import engine_name, marker
from app.databases.passwords import password_place
from app.databases.records import find
from app.engines.base import Tenant
from app.hosts.adapters import Adapters
from app.store.session import fetch
from tests.applications.support import (
    GATED,
    applied,
    ask,
    catalogs,
    ended,
    gated,
    open_gate,
    running_statement,
    tables,
)
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waiting import until

SLOW_REHEARSAL = "CREATE TABLE a (id integer);\nDO SLEEP(5);\nCREATE TABLE b (id integer);\n"


async def restart(service: RunningService) -> None:
    await service.kill("worker")
    await service.start("worker")


async def test_a_transaction_that_was_not_committed_is_begun_anew(service: RunningService, caller: Caller) -> None:
    database = await gated(caller, "postgres")
    application = await ask(caller, database, GATED["postgres"], wait=False)
    await running_statement(caller, application, 2)
    await restart(service)
    await open_gate(database)
    after = await ended(caller, application)
    assert after["status"] == "completed", after
    assert await tables(database) == ["a", "b", "gate"]
    async with store(service.control_dsn):
        [row] = await fetch("SELECT attempt, losses FROM blueprint_applications WHERE id = $1", application["id"])
    # A host that doesn't let the new worker in at once costs an attempt.
    assert row["attempt"] > row["losses"] >= 1


async def tenant_of(service: RunningService, database: Any) -> tuple[int, Tenant]:
    record = await find(UUID(database["uuid"]))
    assert record is not None
    assert record.password_sealed is not None
    password = service.box.open(record.password_sealed, password_place(record.uuid))
    return record.host_id, Tenant(name=record.engine_name, password=password, marker=marker(record.uuid))


async def test_a_transaction_that_was_committed_is_not_begun_anew(service: RunningService, caller: Caller) -> None:
    """The worker died between the commit and its own last note."""
    database = await caller.created(db_type="postgres")
    async with store(service.control_dsn):
        adapters = Adapters(service.box)
        host, tenant = await tenant_of(service, database)
        adapter = await adapters.of_host(host)
        async with service.frozen("worker"):
            application = await ask(caller, database, "CREATE TABLE a (id integer)", wait=False)
            async with adapter.script_session(tenant, 30) as session:
                reference = await session.begin()
                await session.run("CREATE TABLE a (id integer)", 30)
                await session.commit()
            await fetch(
                "UPDATE blueprint_applications SET status = 'running', started_at = now(), attempt = 1,"
                " session_reference = $2 WHERE id = $1",
                application["id"],
                reference,
            )
        after = await ended(caller, application)
        await adapters.close()
    assert after["status"] == "completed", after
    assert await tables(database) == ["a"]


async def test_statements_that_stay_are_listed_and_not_run_again(service: RunningService, caller: Caller) -> None:
    database = await gated(caller, "mysql")
    application = await ask(caller, database, GATED["mysql"], wait=False)
    await running_statement(caller, application, 2)
    await restart(service)
    after = await ended(caller, application)
    assert after["status"] == "failed", after
    assert [entry["status"] for entry in after["execution_log"]] == ["succeeded", "unknown", "skipped"]
    assert "stays" in after["execution_log"][0]["note"]
    assert "Statement 2 (line 2) may or may not have run" in after["error_message"]
    assert await tables(database) == ["a", "gate"]


@pytest.mark.parametrize("dry_run", [pytest.param(False, marks=pytest.mark.soak), True])
async def test_a_rehearsal_is_cleared_away(service: RunningService, caller: Caller, dry_run: bool) -> None:
    database = await caller.created(db_type="mysql")
    before = await catalogs(service, database)
    application = await ask(caller, database, SLOW_REHEARSAL, wait=False, dry_run=dry_run)
    async with store(service.control_dsn):
        query = "SELECT 1 FROM blueprint_applications WHERE id = $1 AND scratch_name IS NOT NULL"
        # It may be over already where the machine stalls.
        begun = f"{query} UNION ALL SELECT 1 FROM blueprint_applications WHERE id = $1 AND completed_at IS NOT NULL"
        await until(lambda: fetch(begun, application["id"]))
        await restart(service)
        after = await ended(caller, application)
        assert after["status"] == ("rolled_back" if dry_run else "completed"), after
        assert not await fetch(query, application["id"])
    if dry_run:
        assert await catalogs(service, database) == before
    else:
        assert await tables(database) == ["a", "b"]
        left = {str(row) for row in await catalogs(service, database)} - {str(row) for row in before}
        assert all(database["db_name"] in row for row in left), left


async def test_a_dry_run_whose_worker_dies(service: RunningService, caller: Caller) -> None:
    database = await gated(caller, "postgres")
    before = await catalogs(service, database)
    application = await ask(caller, database, GATED["postgres"], wait=False, dry_run=True)
    await running_statement(caller, application, 2)
    await restart(service)
    await open_gate(database)
    assert (await ended(caller, application))["status"] == "rolled_back"
    assert await catalogs(service, database) == before


async def test_a_script_that_ends_its_own_session(caller: Caller) -> None:
    """Begun anew a few times, not for ever."""
    database = await caller.created(db_type="postgres")
    await applied(caller, database, "CREATE SEQUENCE numbers")
    suicide = "CREATE TABLE a (id integer); SELECT setval('numbers', 9); SELECT pg_terminate_backend(pg_backend_pid());"
    after = await ended(caller, await ask(caller, database, suicide, wait=False))
    assert after["status"] == "failed", after
    assert "lost 3 times" in after["error_message"]
    assert after["error_message"].endswith("Nothing was changed. What setval has set is not undone.")
    assert await tables(database) == []


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("setting", ["character_set_results = utf16", "sql_select_limit = 0"])
async def test_a_rehearsal_whose_session_answers_no_more(caller: Caller, setting: str, dry_run: bool) -> None:
    database = await caller.created(db_type="mysql")
    script = f"CREATE TABLE a (id integer);\nSET {setting};\nCREATE TABLE b (id integer);\n"
    after = await ended(caller, await ask(caller, database, script, wait=False, dry_run=dry_run))
    assert after["status"] == "failed", after
    assert "Statement 2 (line 2) failed" in after["error_message"]
    assert await tables(database) == []


async def test_a_rehearsal_that_ends_each_time_is_begun_a_few_times(service: RunningService, caller: Caller) -> None:
    """Whatever ends it: what an attempt has left on the host shows that it was begun."""
    database = await caller.created(db_type="mysql")
    async with store(service.control_dsn):
        async with service.frozen("worker"):
            application = await ask(caller, database, SLOW_REHEARSAL, wait=False, dry_run=True)
            query = "UPDATE blueprint_applications SET attempt = 3, losses = 2, scratch_name = $2 WHERE id = $1"
            await fetch(query, application["id"], engine_name())
        after = await ended(caller, application)
        [row] = await fetch("SELECT losses, scratch_name FROM blueprint_applications WHERE id = $1", application["id"])
    assert after["status"] == "failed", after
    assert "lost 3 times" in after["error_message"]
    assert (row["losses"], row["scratch_name"]) == (3, None)
