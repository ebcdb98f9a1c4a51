"""The ids in a worker's log lines: workflow, activity, database, and the API request that caused them.

The API writes its request's id into the workflow's input. The workflow passes it to each activity in a Temporal header,
together with the database, and the activity passes it to the workflows that it requests.
"""

import logging
import time
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec
import temporalio.activity
import temporalio.workflow
from structlog.contextvars import bind_contextvars
from temporalio.api.common.v1 import Payload
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    ExecuteWorkflowInput,
    Interceptor,
    StartActivityInput,
    StartLocalActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from app.core import context
from app.core.logging import LogLine, write_line
from workers.interceptors import outcome_of

_HEADER = "headwater-log-ids"


class _Ids(msgspec.Struct, frozen=True, omit_defaults=True):
    """Ids that an activity's own input doesn't have."""

    request_id: str | None = None
    database: UUID | None = None


class ActivityLine(LogLine, kw_only=True, omit_defaults=True):
    """One attempt of an activity."""

    event: str = msgspec.field(default_factory=lambda: "activity")
    logger: str = msgspec.field(default_factory=lambda: "workers.activities")
    activity: str
    attempt: int
    outcome: str
    """`ok`, `cancelled`, or the failure's type."""
    duration_ms: float
    workflow_id: str | None
    workflow_type: str | None
    run_id: str | None
    database: UUID | None = None


class LogIds(Interceptor):
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _ActivityIds(next)

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:
        return _WorkflowIds


def ids_beside_messages() -> None:
    """Keeps the SDK from writing the ids into the text of each message: they have their own fields."""
    temporalio.activity.logger.activity_info_on_message = False
    temporalio.workflow.logger.workflow_info_on_message = False


class _WorkflowIds(WorkflowInboundInterceptor):
    """Passes a workflow's ids to its activities."""

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        self.header: Mapping[str, Payload] = {}
        super().init(_OutboundIds(outbound, self))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        request = input.args[0] if input.args else None
        ids = _Ids(getattr(request, "request_id", None), getattr(request, "database", None))
        if ids != _Ids():
            self.header = {_HEADER: Payload(data=msgspec.json.encode(ids))}
        context.request_id.set(ids.request_id or "")
        return await super().execute_workflow(input)


class _OutboundIds(WorkflowOutboundInterceptor):
    def __init__(self, next: WorkflowOutboundInterceptor, ids: _WorkflowIds) -> None:
        super().__init__(next)
        self._ids = ids

    def start_activity(self, input: StartActivityInput) -> temporalio.workflow.ActivityHandle[Any]:
        input.headers = {**input.headers, **self._ids.header}
        return super().start_activity(input)

    def start_local_activity(self, input: StartLocalActivityInput) -> temporalio.workflow.ActivityHandle[Any]:
        input.headers = {**input.headers, **self._ids.header}
        return super().start_local_activity(input)


class _ActivityIds(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = temporalio.activity.info()
        payload = input.headers.get(_HEADER)
        ids = msgspec.json.decode(payload.data, type=_Ids) if payload is not None else _Ids()
        # Not reset: each activity has its own task, in which the SDK logs a failure after this method has ended.
        context.request_id.set(ids.request_id or "")
        bind_contextvars(
            activity=info.activity_type,
            attempt=info.attempt,
            workflow_id=info.workflow_id,
            workflow_type=info.workflow_type,
            run_id=info.workflow_run_id,
            **({} if ids.database is None else {"database": str(ids.database)}),
        )
        began = time.perf_counter()
        outcome = "ok"
        try:
            return await super().execute_activity(input)
        except BaseException as failure:
            outcome = outcome_of(failure)
            raise
        finally:
            line = ActivityLine(
                activity=info.activity_type,
                attempt=info.attempt,
                outcome=outcome,
                duration_ms=round(1000 * (time.perf_counter() - began), 3),
                workflow_id=info.workflow_id,
                workflow_type=info.workflow_type,
                run_id=info.workflow_run_id,
                database=ids.database,
            )
            write_line(logging.INFO if outcome in ("ok", "cancelled") else logging.WARNING, line)
