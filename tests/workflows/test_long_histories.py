"""A workflow that fails for weeks goes on as a new run, from where it stood, before its history gets long."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowExecutionStatus

from app.contracts.engine import ENGINE_REFUSED, HOST_UNAVAILABLE, NAME_TAKEN
from app.contracts.restores import BACKUP_DAMAGED
from app.contracts.retries import CANCEL
from app.core.temporal import connect
from tests.support.temporal_server import running_temporal
from tests.support.waiting import until
from tests.workflows.fakes import Script, fails
from tests.workflows.scenario import SHORT_TASK
from tests.workflows.scenarios import SCENARIOS
from tests.workflows.stage import Handle, begin, details, workers
from workers.search_attributes import register_search_attributes

EVENTS = "40"
"""In place of Temporal's 4096."""


@pytest_asyncio.fixture
async def hasty(tmp_path: Path) -> AsyncIterator[Client]:
    """Of a server that suggests a new run early."""
    async with running_temporal(tmp_path, **{"limit.historyCount.suggestContinueAsNew": EVENTS}) as server:
        client = await connect(server.address, "default")
        await register_search_attributes(client)
        yield client


async def _went_on(client: Client, first: Handle) -> Handle:
    """The run that came after."""

    async def ended() -> bool:
        run = client.get_workflow_handle(first.id, run_id=first.first_execution_run_id)
        return (await run.describe()).status is WorkflowExecutionStatus.CONTINUED_AS_NEW

    await until(ended)
    return client.get_workflow_handle(first.id)


@pytest.mark.parametrize(
    ("name", "activity", "words"),
    [("provision-active", "create_database", "Active on"), ("remnant-removed", "remove_remnant", "")],
)
async def test_it_goes_on_and_ends_well(hasty: Client, name: str, activity: str, words: str) -> None:
    kind = NAME_TAKEN if activity == "create_database" else ENGINE_REFUSED
    script = Script(forever={activity: fails(kind, final=True)})
    async with workers(hasty, script):
        handle = await _went_on(hasty, await begin(hasty, SCENARIOS[name]))
        script.forever.clear()
        await asyncio.wait_for(handle.result(), 60)
        assert words in await details(handle)


async def test_a_cancelled_one_goes_on_with_cleaning_up(hasty: Client) -> None:
    script = Script(
        hangs=frozenset({"create_database"}), forever={"destroy_database": fails(ENGINE_REFUSED, final=True)}
    )
    async with workers(hasty, script):
        first = await begin(hasty, replace(SCENARIOS["provision-active"], task_timeout=SHORT_TASK))
        await asyncio.wait_for(script.hanging.wait(), 60)
        await first.cancel()
        handle = await _went_on(hasty, first)
        script.forever.clear()
        await asyncio.wait_for(handle.result(), 60)
        assert "nothing is left of it" in await details(handle)
    assert script.calls.count("create_database") == 1
    assert script.calls[-1] == "record_destroyed"


async def test_a_cancelled_application_runs_nothing_when_it_goes_on(hasty: Client) -> None:
    """By a client, and in Temporal."""
    script = Script(
        hangs=frozenset({"apply_blueprint"}), forever={"abandon_application": fails(HOST_UNAVAILABLE, final=True)}
    )

    async def both_hang() -> bool:
        return script.calls == ["apply_blueprint"] * 2

    async with workers(hasty, script):
        begun = [await begin(hasty, SCENARIOS["apply-completed"]) for _ in range(2)]
        await until(both_hang)
        await begun[0].signal(CANCEL)
        await begun[1].cancel()
        again = [await _went_on(hasty, first) for first in begun]
        script.hangs = frozenset()
        script.forever.clear()
        for handle in again:
            await asyncio.wait_for(handle.result(), 60)
            assert "Cancelled" in await details(handle)
    assert script.calls.count("apply_blueprint") == 2
    assert script.calls[-1] == "abandon_application"


async def test_one_that_cannot_be_filled_goes_on_with_cleaning_up(hasty: Client) -> None:
    script = Script(
        {"fill_database": [fails(BACKUP_DAMAGED, final=True)]},
        forever={"destroy_database": fails(ENGINE_REFUSED, final=True)},
    )
    async with workers(hasty, script):
        handle = await _went_on(hasty, await begin(hasty, SCENARIOS["provision-from-a-source"]))
        script.forever.clear()
        await asyncio.wait_for(handle.result(), 60)
        assert "nothing is left of it" in await details(handle)
    assert script.calls.count("create_database") == 1
    assert script.calls[-1] == "record_destroyed"
