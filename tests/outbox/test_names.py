"""What operators read in the Temporal UI: names beside ids, and nothing that the UI would render."""

from datetime import timedelta
from uuid import UUID

import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowExecution

from app.core.temporal import connect
from app.store.session import fetch
from app.upkeep.reconcile.service import reconcile_records
from tests.applications.support import applied
from tests.restores.support import backed_up
from tests.support.answers import body_of
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waited import WAIT, waited_in_vain
from tests.support.waiting import until

HOSTILE = "![x](https://evil.example/a.png) <b>*"


@pytest_asyncio.fixture
async def client(service: RunningService) -> Client:
    return await connect(service.temporal.address, "default")


async def _listed(client: Client, kind: str, database: str) -> WorkflowExecution:
    async def look() -> list[WorkflowExecution]:
        query = f"WorkflowType = '{kind}' AND HeadwaterDatabase = '{database}'"
        return [one async for one in client.list_workflows(query)]

    return (await until(look))[0]


async def _summary(client: Client, one: WorkflowExecution) -> str:
    return await (await client.get_workflow_handle(one.id).describe()).static_summary() or ""


async def test_names_as_they_are_when_it_starts(service: RunningService, caller: Caller, client: Client) -> None:
    database = (await caller.created("orders"))["uuid"]
    async with store(service.control_dsn):
        [row] = await fetch("SELECT name FROM teams WHERE id = $1", caller.team_id)
        await fetch("UPDATE teams SET name = $2 WHERE id = $1", caller.team_id, HOSTILE)
    summary = await _summary(client, await _listed(client, "ProvisionDatabase", database))
    assert summary == f'postgres database "orders", team "{row["name"][:30]}", {database}'.replace("@", "?")
    await caller.patch(f"/databases/{database}", {"name": "invoices"})
    await caller.patch(f"/databases/{database}/quotas", {"connection_hard_limit": 3})
    summary = await _summary(client, await _listed(client, "ApplyLimits", database))
    assert summary.startswith('postgres database "invoices", team "??x??https?')
    assert not set("<>[]()!*") & set(summary)


@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_dry_run_can_be_told_in_the_list(caller: Caller, client: Client, dry_run: bool) -> None:
    database = await caller.created("orders")
    await applied(caller, database, "CREATE TABLE a (id integer PRIMARY KEY)", dry_run=dry_run)
    listed = await _listed(client, "ApplyBlueprint", database["uuid"])
    assert listed.id.endswith("/dry-run") is dry_run
    summary = await _summary(client, listed)
    assert summary.startswith("Dry run ") is dry_run
    assert 'database "orders"' in summary


async def test_a_database_without_a_name_is_called_what_it_is(caller: Caller, client: Client) -> None:
    """One into which a backup is restored for a test of it; nobody has given it a name."""
    made = await caller.created("orders")
    backup = await backed_up(caller, made)
    answer = await caller.post(f"/backups/{backup['uuid']}/restore_tests", None, params=WAIT)
    request_id = body_of(answer, 202 if waited_in_vain(answer) else 201)["request_id"]

    async def look() -> list[WorkflowExecution]:
        query = f"WorkflowType = 'DeleteDatabase' AND HeadwaterRequest = '{request_id}'"
        return [one async for one in client.list_workflows(query)]

    [listed] = await until(look)
    assert (await _summary(client, listed)).startswith("postgres scratch database, no team, ")


async def test_reconciling_says_which_database(service: RunningService, caller: Caller, client: Client) -> None:
    made = await caller.created("orders")
    async with store(service.control_dsn):
        await fetch("UPDATE teams SET name = $2 WHERE id = $1", caller.team_id, HOSTILE)
        stuck = "status = 'provisioning', created_at = now() - $2::interval"
        await fetch(f"UPDATE databases SET {stuck} WHERE uuid = $1", UUID(made["uuid"]), timedelta(minutes=2))
        try:
            told = (await reconcile_records(client)).messages
        finally:
            await fetch("UPDATE databases SET status = 'active' WHERE uuid = $1", UUID(made["uuid"]))
    [sentence] = [one for one in told if made["uuid"] in one]
    assert sentence.startswith(f'provisioning_stuck: {made["uuid"]} ("orders", team "??x??https???evil.example')
    assert not set("<>[]!*") & set(sentence)
