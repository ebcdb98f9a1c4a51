"""Workflows wait for hosts themselves, until a signal says that the next attempt is to be made now."""

import asyncio
from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from app.contracts import retries
from app.contracts.engine import HOST_UNAVAILABLE
from app.contracts.retries import CANCEL, RETRY_NOW
from tests.support.waiting import until
from tests.workflows.fakes import Script, fails
from tests.workflows.scenarios import SCENARIOS
from tests.workflows.stage import Handle, begin, says, workers

STEPS = {
    "provision-active": "create_database",
    "delete-at-once": "revoke_access",
    "limits-in-force": "apply_limits",
    "access-in-force": "apply_access",
    "credentials-in-force": "apply_credentials",
    "apply-completed": "apply_blueprint",
    "remnant-removed": "remove_remnant",
    "remnant-closed": "close_remnant",
}
"""The step on a host, by the scenario of a workflow that takes it."""


def test_the_pauses_grow_from_a_second_to_half_a_minute() -> None:
    assert [retries.pause_after(rounds).total_seconds() for rounds in (1, 2, 3, 6, 2000)] == [1, 2, 4, 30, 30]


@pytest.fixture
def _for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "pause_after", lambda _: timedelta(days=1))


async def _timers(handle: Handle) -> int:
    """How many the workflow has set."""
    history = await handle.fetch_history()
    return sum(event.event_type == EventType.EVENT_TYPE_TIMER_STARTED for event in history.events)


@pytest.mark.usefixtures("_for_ever")
@pytest.mark.parametrize("name", STEPS)
async def test_a_retry_ends_the_waiting(client: Client, name: str) -> None:
    script = Script(forever={STEPS[name]: fails(HOST_UNAVAILABLE)})
    async with workers(client, script):
        handle = await begin(client, SCENARIOS[name])
        await until(lambda: _timers(handle))
        made = script.calls.count(STEPS[name])
        await handle.signal(RETRY_NOW)

        async def waits_again() -> bool:
            return await _timers(handle) == 2

        await until(waits_again)
        assert script.calls.count(STEPS[name]) == made + retries.ATTEMPTS_AT_ONCE
        script.forever.clear()
        await handle.signal(RETRY_NOW)
        await asyncio.wait_for(handle.result(), 60)


@pytest.mark.usefixtures("_for_ever")
async def test_a_retry_during_the_attempts_counts(client: Client) -> None:
    script = Script(hangs=frozenset({"apply_limits"}), forever={"apply_limits": fails(HOST_UNAVAILABLE)})
    async with workers(client, script):
        handle = await begin(client, SCENARIOS["limits-in-force"])
        await asyncio.wait_for(script.hanging.wait(), 60)
        await handle.signal(RETRY_NOW)
        script.hangs = frozenset()
        await until(lambda: _timers(handle))
        script.forever.clear()

        async def has_tried_again() -> bool:
            return script.calls.count("apply_limits") > retries.ATTEMPTS_AT_ONCE

        await until(has_tried_again)
        await handle.signal(RETRY_NOW)
        await asyncio.wait_for(handle.result(), 60)


@pytest.mark.usefixtures("_for_ever")
async def test_an_application_that_waits_is_signalled_to_stop(client: Client) -> None:
    script = Script(forever={"apply_blueprint": fails(HOST_UNAVAILABLE)})
    async with workers(client, script):
        handle = await begin(client, SCENARIOS["apply-completed"])
        await until(lambda: _timers(handle))
        await handle.signal(CANCEL)
        await asyncio.wait_for(handle.result(), 60)
        assert "Cancelled." in await says(handle, "Cancelled.")
    assert script.calls[-1] == "abandon_application"


@pytest.mark.usefixtures("_for_ever")
async def test_a_provisioning_that_waits_is_cancelled(client: Client) -> None:
    script = Script(forever={"create_database": fails(HOST_UNAVAILABLE)})
    async with workers(client, script):
        handle = await begin(client, SCENARIOS["provision-active"])
        await until(lambda: _timers(handle))
        await handle.cancel()
        assert "nothing is left of it" in await says(handle, "nothing is left of it")
    assert script.calls[-3:] == ["abandon_provisioning", "destroy_database", "record_destroyed"]
