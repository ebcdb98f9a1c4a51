"""Each workflow, each way it ends: which steps it takes in which order, and what it says at the end."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import CancelledError

from app.contracts import retries
from app.contracts.control import HostFailure
from app.contracts.engine import ENGINE_REFUSED, HOST_UNAVAILABLE, STORE_UNAVAILABLE
from app.contracts.queues import backup_queue, engine_queue, provision_workflow_id, restore_queue
from tests.workflows.fakes import Script, fails
from tests.workflows.scenario import SHORT_TASK
from tests.workflows.scenarios import BACKUP, CANCELLING_DELETE, DELETED, FIRST, REGION, SCENARIOS
from tests.workflows.stage import begin, play, says, workers


@pytest.mark.parametrize("name", SCENARIOS)
async def test_it_takes_these_steps_and_ends_so(client: Client, name: str) -> None:
    scenario = SCENARIOS[name]
    script = scenario.script()
    played = await play(client, scenario, script)
    assert script.calls == scenario.calls
    assert (await played.handle.describe()).status == scenario.ends
    assert scenario.details in played.details


async def test_a_move_is_reported_where_the_attempt_was_made(client: Client) -> None:
    script = SCENARIOS["provision-moved"].script()
    await play(client, SCENARIOS["provision-moved"], script)
    failure = next(argument for argument in script.arguments if isinstance(argument, HostFailure))
    assert failure.placement == FIRST
    assert not failure.name_taken


@pytest.mark.parametrize(("in_restore", "queue"), [(True, restore_queue(REGION)), (False, backup_queue(REGION))])
async def test_a_backup_that_a_restore_waits_for_has_the_restores_queue(
    client: Client, in_restore: bool, queue: str
) -> None:
    scenario = replace(SCENARIOS["backup-taken"], request=msgspec.structs.replace(BACKUP, in_restore=in_restore))
    played = await play(client, scenario, scenario.script())
    history = await played.handle.fetch_history()
    scheduled = [
        event.activity_task_scheduled_event_attributes.task_queue.name
        for event in history.events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]
    assert scheduled == [queue]


async def test_deleting_cancels_a_provisioning_under_way(client: Client) -> None:
    making = Script(hangs=frozenset({"create_database"}))
    deletion = replace(SCENARIOS["delete-at-once"], request=CANCELLING_DELETE)
    async with workers(client, making):
        provisioning = await client.start_workflow(
            SCENARIOS["provision-active"].workflow.run,
            SCENARIOS["provision-active"].request,
            id=provision_workflow_id(CANCELLING_DELETE.database),
            task_queue=engine_queue(REGION),
            task_timeout=SHORT_TASK,
        )
        await asyncio.wait_for(making.hanging.wait(), 60)
        deleting = await begin(client, deletion)
        await asyncio.wait_for(deleting.result(), 60)
        with pytest.raises(WorkflowFailureError):
            await asyncio.wait_for(provisioning.result(), 60)
    assert sorted(making.calls) == sorted(
        ["create_database", "abandon_provisioning", "destroy_database", "record_destroyed", *DELETED]
    )


STUCK = {
    "create_database": ("provision-active", HOST_UNAVAILABLE, "db-1: no answer in time"),
    "look_at_grace": ("delete-at-once", STORE_UNAVAILABLE, "Headwater's own database is out of reach"),
    "revoke_access": ("delete-at-once", ENGINE_REFUSED, "sessions of tfirst don't end"),
    "destroy_database": ("delete-at-once", HOST_UNAVAILABLE, "db-1: no answer in time"),
    "apply_limits": ("limits-in-force", HOST_UNAVAILABLE, "db-1: no answer in time"),
    "apply_access": ("access-in-force", HOST_UNAVAILABLE, "db-1: no answer in time"),
    "remove_remnant": ("remnant-removed", HOST_UNAVAILABLE, "db-1: no answer in time"),
    "close_remnant": ("remnant-closed", HOST_UNAVAILABLE, "db-1: no answer in time"),
}


@pytest.mark.parametrize("activity", STUCK)
async def test_a_stuck_workflow_says_what_it_waits_for(client: Client, activity: str) -> None:
    name, kind, message = STUCK[activity]
    async with workers(client, Script(forever={activity: fails(kind, message)})):
        handle = await begin(client, SCENARIOS[name])
        said = await says(handle, "Waiting ")
        await handle.terminate()
    assert message in said


async def test_without_an_engine_worker_it_names_the_queue_that_nobody_serves(client: Client) -> None:
    scenario = SCENARIOS["remnant-removed"]
    assert scenario.request is not None
    elsewhere = msgspec.structs.replace(scenario.request, region="nowhere-9")
    async with workers(client, Script()):
        handle = await begin(client, replace(scenario, request=elsewhere))
        await says(handle, "no worker serves the task queue `engine:nowhere-9`")
        await handle.terminate()


async def test_a_worker_that_leaves_in_the_middle_cancels_nothing(client: Client) -> None:
    making, after = Script(hangs=frozenset({"create_database"})), Script()
    async with workers(client, making):
        handle = await begin(client, SCENARIOS["provision-active"])
        await asyncio.wait_for(making.hanging.wait(), 60)
    async with workers(client, after):
        await asyncio.wait_for(handle.result(), 60)
    assert making.calls == ["create_database"]
    assert set(after.calls) == {"create_database"}


def _leaves() -> None:
    raise CancelledError("the worker is leaving")


async def test_an_attempt_that_is_cut_off_by_its_worker_is_made_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Temporal doesn't take the second one's end, which nobody asked for: the next is made when it is heard of no more.
    monkeypatch.setattr(retries, "HEARTBEAT", timedelta(seconds=5))
    script = Script({"create_database": [_leaves, _leaves]})
    played = await play(client, SCENARIOS["provision-active"], script)
    # On a machine that stalls the third may be taken for lost, too.
    assert len(script.calls) >= 3
    assert set(script.calls) == {"create_database"}
    assert "Active on" in played.details
