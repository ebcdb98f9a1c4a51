"""One application after the other, and what becomes of them when their database goes."""

import pytest

from app.contracts.queues import apply_workflow_id
from app.core.temporal import connect
from app.store.session import fetch
from tests.applications.support import ENGINES, GATED, ask, ended, gated, open_gate, running_statement, seen, tables
from tests.support.answers import data_of, error_of
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.store import store

each_engine = pytest.mark.parametrize("engine", ENGINES)


@each_engine
async def test_two_at_once_queue_up(caller: Caller, engine: str) -> None:
    database = await gated(caller, engine)
    first = await ask(caller, database, GATED[engine], wait=False)
    others = [await ask(caller, database, f"CREATE TABLE {name} (id integer)", wait=False) for name in "cd"]
    await running_statement(caller, first, 2)
    assert [(await seen(caller, other))["status"] for other in others] == ["pending"] * 2
    await open_gate(database)
    assert (await ended(caller, first))["status"] == "completed"
    ends = [await ended(caller, application) for application in (first, *others)]
    assert [end["status"] for end in ends] == ["completed"] * 3
    assert ends[0]["completed_at"] <= ends[1]["started_at"] <= ends[1]["completed_at"] <= ends[2]["started_at"]
    assert await tables(database) == ["a", "b", "c", "d", "gate"]


async def test_databases_dont_wait_for_each_other(caller: Caller) -> None:
    databases = [await gated(caller, "postgres", f"db-{number}") for number in range(3)]
    asked = [await ask(caller, database, GATED["postgres"], wait=False) for database in databases]
    for application in asked:
        await running_statement(caller, application, 2)
    for database in databases:
        await open_gate(database)
    after = [await ended(caller, application) for application in asked]
    assert [application["status"] for application in after] == ["completed"] * 3
    starts, ends = ([application[which] for application in after] for which in ("started_at", "completed_at"))
    assert max(starts) < min(ends)


@each_engine
async def test_a_database_that_is_deleted_meanwhile(caller: Caller, engine: str) -> None:
    database = await gated(caller, engine)
    first = await ask(caller, database, GATED[engine], wait=False)
    second = await ask(caller, database, "CREATE TABLE c (id integer)", wait=False)
    await running_statement(caller, first, 2)
    data_of(await caller.delete(f"/databases/{database['uuid']}"))
    waiting = await seen(caller, second)
    assert (waiting["status"], waiting["started_at"]) == ("failed", None)
    assert "deleted before its turn" in waiting["error_message"]
    running = await ended(caller, first)
    assert running["status"] == "failed"
    if engine == "postgres":
        assert "The database is deleted. Nothing was changed." in running["error_message"]
        assert running["execution_log"][0]["note"] == "rolled back"
    else:
        assert [entry["status"] for entry in running["execution_log"]] == ["succeeded", "unknown", "skipped"]
    error_of(await caller.get(f"/databases/{database['uuid']}"), 404, "not_found")


async def test_a_database_that_is_not_active(service: RunningService, caller: Caller) -> None:
    database = await caller.created()
    async with service.frozen("worker"):
        waiting = await ask(caller, database, "CREATE TABLE c (id integer)", wait=False)
        async with store(service.control_dsn):
            await fetch("UPDATE databases SET status = 'paused' WHERE uuid = $1", database["uuid"])
        path = f"/databases/{database['uuid']}/blueprint_applications"
        body = {"blueprint_uuid": waiting["blueprint_uuid"]}
        error_of(await caller.post(path, body), 422, "database_not_active")
    after = await ended(caller, waiting)
    assert after["status"] == "failed"
    assert after["error_message"] == "The database is paused. Nothing was changed."


@each_engine
async def test_a_workflow_that_an_operator_cancels(service: RunningService, caller: Caller, engine: str) -> None:
    database = await gated(caller, engine)
    application = await ask(caller, database, GATED[engine], wait=False)
    await running_statement(caller, application, 2)
    client = await connect(service.temporal.address, "default")
    await client.get_workflow_handle(apply_workflow_id(application["id"], dry_run=False)).cancel()
    after = await ended(caller, application)
    assert after["status"] == "failed"
    assert await tables(database) == (["gate"] if engine == "postgres" else ["a", "gate"])
