"""The 24 hours between the end of access and the end of the data, on a server that skips time."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from temporalio.client import Client

from app.contracts.control import GracePeriod
from app.contracts.databases import ROW_CHANGED, DeleteDatabaseInput
from tests.support.time_skipping import time_skipping
from tests.support.waiting import until
from tests.workflows.fakes import Play, Script
from tests.workflows.scenario import Scenario
from tests.workflows.scenarios import DELETED, GRACE, PAST, SCENARIOS, SUBJECT
from tests.workflows.stage import Handle, begin, says, workers

PUNCTUAL = timedelta(minutes=1)
"""Of a day: on a crowded machine a worker takes its time."""


async def test_the_data_is_destroyed_when_the_grace_period_ends_and_not_before() -> None:
    async with time_skipping() as client:
        destroy_at = datetime.now(UTC) + GRACE
        request = DeleteDatabaseInput(**SUBJECT, destroy_at=destroy_at, cancel_provisioning=False)
        script = Script({"look_at_grace": [lambda: _kept(destroy_at, destroy_at - datetime.now(UTC))()]})
        async with workers(client, script):
            handle = await begin(client, _deleting(request))
            await handle.result()
        assert script.calls == [*DELETED[:2], *DELETED[1:]]
        revoked, destroyed = await _moments(handle)
        assert revoked < destroy_at - GRACE + PUNCTUAL
        assert timedelta(0) <= destroyed - destroy_at < PUNCTUAL


async def test_meanwhile_it_says_until_when_the_data_is_kept(client: Client) -> None:
    destroy_at = datetime.fromisoformat("2999-12-31T23:59:59+00:00")
    request = DeleteDatabaseInput(**SUBJECT, destroy_at=destroy_at, cancel_provisioning=False)
    script = Script(forever={"look_at_grace": _kept(destroy_at, timedelta(days=300))})
    async with workers(client, script):
        handle = await begin(client, _deleting(request))
        await says(handle, "kept until 2999-12-31 23:59:59 UTC")
        await handle.terminate()


async def test_woken_it_asks_the_row_which_may_bring_the_end_forward(client: Client) -> None:
    script = Script({"look_at_grace": [_kept(PAST, timedelta(days=300)), _kept(PAST, timedelta(days=200))]})
    async with workers(client, script):
        handle = await begin(client, SCENARIOS["delete-at-once"])
        await says(handle, "The data is kept until")
        await handle.signal(ROW_CHANGED)
        await until(lambda: _looks(script, 2))
        await handle.signal(ROW_CHANGED)
        await handle.result()
    assert script.calls == [DELETED[0], *["look_at_grace"] * 3, *DELETED[2:]]


async def test_woken_while_it_still_ends_access_it_looks_no_later(client: Client) -> None:
    script = Script(hangs=frozenset({"revoke_access"}))
    async with workers(client, script):
        handle = await begin(client, SCENARIOS["delete-at-once"])
        await script.hanging.wait()
        await handle.signal(ROW_CHANGED)
        script.hangs = frozenset()
        await handle.result()
    assert script.calls == DELETED


async def _looks(script: Script, count: int) -> bool:
    return script.calls.count("look_at_grace") == count


def _kept(ends_at: datetime, remaining: timedelta) -> Play:
    return lambda: GracePeriod(ends_at=ends_at, remaining_seconds=remaining.total_seconds())


def _deleting(request: DeleteDatabaseInput) -> Scenario:
    return replace(SCENARIOS["delete-at-once"], request=request)


async def _moments(handle: Handle) -> tuple[datetime, datetime]:
    """When access ended and when the destruction was begun, by the server's clock."""
    scheduled = [
        event.event_time.ToDatetime(tzinfo=UTC)
        for event in (await handle.fetch_history()).events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]
    return scheduled[0], scheduled[1]
