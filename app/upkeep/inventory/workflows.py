"""Open workflows: which of them work, which wait as they should, and which are stuck."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec
from temporalio.api.common.v1 import WorkflowExecution as Execution
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError, RPCStatusCode

from app.core.clock import utc_now
from app.core.ids import find_uuid

STUCK_AFTER = timedelta(seconds=60)
"""How long a step may fail, or find no worker, before its workflow counts as stuck."""
_CONCURRENCY = 16
_EVENTS = 50
"""The number of events read from a history's end. A step that is retried adds none."""


class WorkflowState(StrEnum):
    RUNNING = "running"
    """A step is running, or was just queued."""
    WAITING = "waiting"
    """It waits for a time or a signal, as it should: the end of a grace period, the next attempt of a delivery."""
    STUCK = "stuck"
    """A step has failed for a minute, or no worker takes it. The reason says which."""


class OpenWorkflow(msgspec.Struct, kw_only=True):
    """The most informative columns come first, because a narrow terminal shows only those."""

    state: WorkflowState
    type: str
    name: str | None = None
    """The name of its database."""
    team: str | None = None
    started_at: datetime
    workflow_id: str
    reason: str | None
    """The current step, or its last failure."""

    @property
    def database(self) -> UUID | None:
        """The database's uuid in the workflow's id."""
        return find_uuid(self.workflow_id)


class _Step(msgspec.Struct, frozen=True):
    """A pending step of a workflow: an activity, or its own next task."""

    stuck: bool
    reason: str


async def list_open(client: Client, patience: timedelta = STUCK_AFTER) -> list[OpenWorkflow]:
    """The open workflows: stuck ones first, then running ones, then waiting ones; the newest first in each group."""
    turns = asyncio.Semaphore(_CONCURRENCY)

    async def inspect(found: WorkflowExecution) -> OpenWorkflow | None:
        async with turns:
            return await _inspect(client, found, patience)

    # Temporal's index lags a moment: a listed workflow may have ended.
    inspections = [inspect(found) async for found in client.list_workflows("ExecutionStatus = 'Running'")]
    open_workflows = [one for one in await asyncio.gather(*inspections) if one is not None]
    order = [WorkflowState.STUCK, WorkflowState.RUNNING, WorkflowState.WAITING]
    open_workflows.sort(key=lambda one: one.started_at, reverse=True)
    return sorted(open_workflows, key=lambda one: order.index(one.state))


async def _inspect(client: Client, found: WorkflowExecution, patience: timedelta) -> OpenWorkflow | None:
    try:
        description = await client.get_workflow_handle(found.id, run_id=found.run_id).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise
    if description.status is not found.status:
        return None
    raw = description.raw_description
    begun = await _scheduled_times(client, found) if any(one.attempt > 1 for one in raw.pending_activities) else {}
    steps = _pending(raw, found.task_queue, utc_now() - patience, begun)
    stuck = [step for step in steps if step.stuck]
    state = WorkflowState.STUCK if stuck else WorkflowState.RUNNING if steps else WorkflowState.WAITING
    return OpenWorkflow(
        state=state,
        type=found.workflow_type,
        started_at=found.start_time,
        workflow_id=found.id,
        reason="; ".join(step.reason for step in stuck or steps) or await description.static_summary(),
    )


async def _scheduled_times(client: Client, found: WorkflowExecution) -> dict[str, datetime]:
    """When the latest activities were scheduled, by activity id. The pending activity itself shows only the time of
    its next retry."""
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace,
        execution=Execution(workflow_id=found.id, run_id=found.run_id),
        maximum_page_size=_EVENTS,
    )
    history = (await client.workflow_service.get_workflow_execution_history_reverse(request)).history
    return {
        event.activity_task_scheduled_event_attributes.activity_id: _time(event.event_time)
        for event in history.events
        if event.HasField("activity_task_scheduled_event_attributes")
    }


def _pending(raw: Any, queue: str, since: datetime, begun: Mapping[str, datetime]) -> list[_Step]:
    """The pending steps of a workflow. A step scheduled before `since` is stuck, unless it is running."""
    steps = [_activity(one, since, begun.get(one.activity_id)) for one in raw.pending_activities]
    if raw.HasField("pending_workflow_task"):
        steps.append(_task(raw.pending_workflow_task, queue, since))
    return steps


def _activity(activity: Any, since: datetime, begun: datetime | None) -> _Step:
    name = activity.activity_type.name
    late = (begun or _time(activity.scheduled_time)) <= since
    if activity.attempt > 1:
        failure = activity.last_failure
        cause = failure.cause.message or failure.message
        return _Step(late, f"{name} failed {activity.attempt - 1} times: {cause}")
    if activity.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED:
        return _Step(late, f"{name}: no worker has taken it yet")
    return _Step(False, f"{name} is under way")


def _task(task: Any, queue: str, since: datetime) -> _Step:
    late = _time(task.original_scheduled_time) <= since
    if task.attempt > 1:
        return _Step(late, f"its own task failed {task.attempt - 1} times")
    return _Step(late, f"no worker has taken its next task from {queue} yet")


def _time(stamp: Any) -> datetime:
    moment: datetime = stamp.ToDatetime(tzinfo=UTC)
    return moment
