"""Scheduled work: which workflow runs how often, as Schedules in Temporal."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import msgspec
import structlog
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.common import Priority
from temporalio.service import RPCError

from app.contracts.base import Contract
from app.contracts.pool import RefillPool
from app.contracts.queues import CONTROL_QUEUE
from app.contracts.quotas import EnforceQuotas, ReclaimSpace
from app.contracts.reconcile import Reconcile
from app.contracts.upkeep import ScheduleId, Sweep
from app.contracts.usage import CloseUsage
from app.core.settings import Settings
from app.outbox.starting import TASK_TIMEOUT, UPKEEP_FAIRNESS
from app.outbox.workflow_starts import UPKEEP

_SHORTEST = timedelta(seconds=1)
"""The finest interval that Temporal has."""
_CATCH_UP = timedelta(seconds=10)
"""After Temporal was unavailable one late run is enough: each run handles everything."""
_RETRY_SECONDS = 1.0
_AGAIN_SECONDS = 300.0
"""How long a Schedule that somebody deleted may be missing."""
_RPC_TIMEOUT = timedelta(seconds=5)
_USAGE_SECONDS = 300
"""How long a period that could not be closed at its end waits for the next attempt."""

log = structlog.get_logger(__name__)


class UpkeepSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """One Schedule. A run is skipped while the previous one is still going. `id` is the Schedule's, and begins the
    ids of its runs."""

    id: str
    workflow: Any
    """The interface class. It takes `request`, or nothing if that is None."""
    every: Callable[[Settings], float]
    """Seconds."""
    at_random: bool = False
    """Each run starts at a random time in its interval, so that nobody can avoid the measurement."""
    summary: str
    """A line for Temporal's list of workflows."""
    request: Contract | None = None


UPKEEP_SCHEDULES: tuple[UpkeepSchedule, ...] = (
    UpkeepSchedule(
        id=ScheduleId.SWEEP.value,
        workflow=Sweep,
        every=lambda settings: settings.sweep_interval_seconds,
        summary="Remove what has had its time from our own database",
    ),
    UpkeepSchedule(
        id=ScheduleId.REFILL_POOL.value,
        workflow=RefillPool,
        every=lambda settings: settings.refill_interval_seconds,
        summary="All pools, on schedule",
    ),
    UpkeepSchedule(
        id=ScheduleId.RECONCILE.value,
        workflow=Reconcile,
        every=lambda settings: settings.reconcile_interval_seconds,
        summary="Hold our records against themselves and against every engine host",
    ),
    UpkeepSchedule(
        id=ScheduleId.ENFORCE_QUOTAS.value,
        workflow=EnforceQuotas,
        every=lambda settings: settings.quota_interval_seconds,
        at_random=True,
        summary="Hold every database to its plan",
    ),
    UpkeepSchedule(
        id=ScheduleId.RECLAIM_SPACE.value,
        workflow=ReclaimSpace,
        every=lambda settings: settings.quota_interval_seconds,
        summary="Give back the space that deletions left in frozen databases",
    ),
    UpkeepSchedule(
        id=ScheduleId.CLOSE_USAGE.value,
        workflow=CloseUsage,
        every=lambda settings: min(settings.usage_period_seconds, _USAGE_SECONDS),
        summary="Close the periods of the ledger of usage",
    ),
)


async def maintain_schedules(
    client: Client, settings: Settings, schedules: Sequence[UpkeepSchedule] = UPKEEP_SCHEDULES
) -> None:
    """Creates the Schedules and keeps them up to date. Runs until cancelled, and any number may run concurrently.
    Temporal may be unavailable meanwhile."""
    while True:
        pause = _AGAIN_SECONDS
        for upkeep in schedules:
            try:
                await put_schedule(client, settings, upkeep)
            except (RPCError, RuntimeError) as fault:
                pause = _RETRY_SECONDS
                log.warning("schedule_deferred", schedule=upkeep.id, reason=str(fault))
        await asyncio.sleep(pause)


async def put_schedule(client: Client, settings: Settings, upkeep: UpkeepSchedule) -> None:
    """Creates the Schedule, or updates it. An operator's pause is kept."""
    wanted = _schedule(settings, upkeep)
    try:
        await client.create_schedule(upkeep.id, wanted, trigger_immediately=True, rpc_timeout=_RPC_TIMEOUT)
        return
    except ScheduleAlreadyRunningError:
        pass

    def change(found: ScheduleUpdateInput) -> ScheduleUpdate | None:
        there = found.description.schedule
        if _comparable(there) == _comparable(wanted):
            return None
        wanted.state = there.state
        return ScheduleUpdate(schedule=wanted)

    await client.get_schedule_handle(upkeep.id).update(change, rpc_timeout=_RPC_TIMEOUT)


def _schedule(settings: Settings, upkeep: UpkeepSchedule) -> Schedule:
    every = max(timedelta(seconds=upkeep.every(settings)), _SHORTEST)
    action = ScheduleActionStartWorkflow(
        upkeep.workflow.__temporal_workflow_definition.name,
        args=[] if upkeep.request is None else [upkeep.request],
        id=upkeep.id,
        task_queue=CONTROL_QUEUE,
        task_timeout=TASK_TIMEOUT,
        static_summary=upkeep.summary,
        priority=Priority(priority_key=UPKEEP, fairness_key=UPKEEP_FAIRNESS),
    )
    return Schedule(
        action=action,
        spec=ScheduleSpec(
            intervals=[ScheduleIntervalSpec(every=every)],
            jitter=every if upkeep.at_random else None,
        ),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=_CATCH_UP),
    )


def _comparable(schedule: Schedule) -> tuple[Any, ...]:
    """The values in which two equal Schedules agree; one of them comes from Temporal with its input encoded."""
    action = schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow)
    inputs = [one.data if isinstance(one, Payload) else msgspec.json.encode(one) for one in action.args]
    intervals = [interval.every for interval in schedule.spec.intervals]
    jitter = schedule.spec.jitter or timedelta(0)
    times = (intervals, jitter)
    return action.workflow, inputs, action.task_queue, action.task_timeout, action.priority, times, schedule.policy
