"""Schedules on a real Temporal server: each there once, as the settings say, whoever puts it there and when."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import uuid4

import msgspec
from temporalio import workflow
from temporalio.client import Client, ScheduleActionStartWorkflow, ScheduleDescription, ScheduleOverlapPolicy
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from app.contracts.base import Contract
from app.contracts.queues import CONTROL_QUEUE
from app.core.settings import Settings
from app.core.temporal import connect
from app.local.ports import LOOPBACK
from app.local.temporal import TemporalService
from tests.support.logs import logged_by
from tests.support.ports import free_port
from tests.support.waiting import until
from workers import schedules
from workers.schedules import UPKEEP_SCHEDULES, UpkeepSchedule, maintain_schedules, put_schedule

SETTINGS = Settings(refill_interval_seconds=3600)


class Errand(Contract, frozen=True, kw_only=True):
    what: str


@workflow.defn(name="RunErrand")
class RunErrand:
    """Ends when it is told to."""

    def __init__(self) -> None:
        self._done = False

    @workflow.run
    async def run(self, _: Errand) -> None:
        await workflow.wait_condition(lambda: self._done)

    @workflow.signal
    def finish(self) -> None:
        self._done = True


def errand(**changes: object) -> UpkeepSchedule:
    """A schedule of its own."""
    upkeep = UpkeepSchedule(
        id=f"errand-{uuid4()}",
        workflow=RunErrand,
        every=lambda settings: settings.refill_interval_seconds,
        summary="An errand",
        request=Errand(what="sweep"),
    )
    return msgspec.structs.replace(upkeep, **changes)


async def described(client: Client, upkeep: UpkeepSchedule) -> ScheduleDescription:
    return await client.get_schedule_handle(upkeep.id).describe()


async def version(client: Client, upkeep: UpkeepSchedule) -> bytes:
    """Changes with each change of the schedule."""
    return (await described(client, upkeep)).raw_description.conflict_token


@asynccontextmanager
async def keeping(client: Client, settings: Settings, *schedules: UpkeepSchedule) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(maintain_schedules(client, settings, schedules))
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def client_of(server: TemporalService) -> Client:
    return await connect(server.address, "default")


async def test_what_is_set_in_temporal(own_temporal: TemporalService) -> None:
    client, upkeep = await client_of(own_temporal), errand()
    await put_schedule(client, SETTINGS, upkeep)
    schedule = (await described(client, upkeep)).schedule
    action = schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow)
    assert (action.workflow, action.task_queue, action.id) == ("RunErrand", CONTROL_QUEUE, upkeep.id)
    assert action.priority.priority_key == 5
    assert [one.every for one in schedule.spec.intervals] == [timedelta(hours=1)]
    assert schedule.policy.overlap is ScheduleOverlapPolicy.SKIP
    assert schedule.policy.catchup_window == timedelta(seconds=10)


async def test_only_a_change_is_written(own_temporal: TemporalService) -> None:
    client, upkeep = await client_of(own_temporal), errand()
    await put_schedule(client, SETTINGS, upkeep)
    before = await version(client, upkeep)
    await put_schedule(client, SETTINGS, upkeep)
    assert await version(client, upkeep) == before
    await put_schedule(client, Settings(refill_interval_seconds=60), upkeep)
    (interval,) = (await described(client, upkeep)).schedule.spec.intervals
    assert interval.every == timedelta(minutes=1)
    after = await version(client, upkeep)
    await put_schedule(client, Settings(refill_interval_seconds=60), errand(id=upkeep.id, request=Errand(what="dust")))
    assert after != before
    assert await version(client, upkeep) != after


async def test_an_operators_pause_stays(own_temporal: TemporalService) -> None:
    client, upkeep = await client_of(own_temporal), errand()
    await put_schedule(client, SETTINGS, upkeep)
    await client.get_schedule_handle(upkeep.id).pause(note="not now")
    await put_schedule(client, Settings(refill_interval_seconds=60), upkeep)
    state = (await described(client, upkeep)).schedule.state
    assert state.paused
    assert state.note == "not now"


async def test_several_workers_start_at_once(own_temporal: TemporalService) -> None:
    client, upkeep = await client_of(own_temporal), errand()
    await asyncio.gather(*(put_schedule(client, SETTINGS, upkeep) for _ in range(8)))
    assert (await described(client, upkeep)).info.num_actions <= 1


async def test_temporal_away_at_first(own_temporal: TemporalService) -> None:
    away = await connect(f"{LOOPBACK}:{free_port()}", "default", lazy=True)
    upkeep = errand()
    with logged_by(schedules) as logged:
        async with keeping(away, SETTINGS, upkeep) as task:
            await until(lambda: task.done() or len([one for one in logged if one["event"] == "schedule_deferred"]) > 1)
            assert not task.done(), "it goes on trying"
    client = await client_of(own_temporal)
    async with keeping(client, SETTINGS, upkeep):
        await until(lambda: _exists(client, upkeep))


async def test_a_run_is_left_out_while_the_last_one_goes_on(own_temporal: TemporalService) -> None:
    client, upkeep = await client_of(own_temporal), errand(every=lambda _: 0.2)
    async with Worker(
        client, task_queue=CONTROL_QUEUE, workflows=[RunErrand], workflow_runner=UnsandboxedWorkflowRunner()
    ):
        await put_schedule(client, SETTINGS, upkeep)
        skipped = await until(lambda: _skipped(client, upkeep))
        info = (await described(client, upkeep)).info
        assert skipped
        assert info.num_actions == 1
        (running,) = info.running_actions
        handle = client.get_workflow_handle(running.workflow_id)  # type: ignore[attr-defined]  # of its one subclass
        await handle.signal("finish")
        await until(lambda: _ran(client, upkeep, 2))
        await client.get_schedule_handle(upkeep.id).delete()


def test_each_has_a_name_of_its_own() -> None:
    names = [upkeep.id for upkeep in UPKEEP_SCHEDULES]
    assert len(set(names)) == len(names)
    assert all(upkeep.every(Settings()) >= 1 for upkeep in UPKEEP_SCHEDULES)


async def _exists(client: Client, upkeep: UpkeepSchedule) -> bool:
    return upkeep.id in [one.id async for one in await client.list_schedules()]


async def _skipped(client: Client, upkeep: UpkeepSchedule) -> int:
    return (await described(client, upkeep)).info.num_actions_skipped_overlap


async def _ran(client: Client, upkeep: UpkeepSchedule, times: int) -> bool:
    return (await described(client, upkeep)).info.num_actions >= times
