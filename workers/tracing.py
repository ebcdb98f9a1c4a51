"""Spans of workflows and activities.

A workflow's span is not open anywhere: a workflow moves between processes, and each may die. Its id is derived from the
run's, so that every worker knows what its activities are part of, and the worker that ends it sends it, once. A worker
that dies right after that is followed by one that sends the same span again.
"""

from hashlib import sha256
from typing import Any, NoReturn

import temporalio.activity
import temporalio.workflow
from temporalio.exceptions import FailureError, is_cancelled_exception
from temporalio.worker import (
    ActivityInboundInterceptor,
    ContinueAsNewInput,
    ExecuteActivityInput,
    ExecuteWorkflowInput,
    Interceptor,
    StartActivityInput,
    StartChildWorkflowInput,
    StartLocalActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)
from temporalio.workflow import ContinueAsNewError

from app.core.tracing.context import SpanContext
from app.core.tracing.encoding import Attributes
from app.core.tracing.spans import SpanKind, Tracer
from app.core.tracing.temporal import header_of, span_in
from workers.interceptors import outcome_of


class TracedWork(Interceptor):
    """A worker's interceptor. It comes first, so that what the other interceptors do and write belongs to the span."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _TracedActivity(next, self._tracer)

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:
        return type("_TracedWorkflowOfWorker", (_TracedWorkflow,), {"tracer": self._tracer})


class _TracedActivity(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, tracer: Tracer) -> None:
        super().__init__(next)
        self._tracer = tracer

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        parent = span_in(input.headers)
        if parent is None:  # of a workflow that a worker without traces began
            return await super().execute_activity(input)
        info = temporalio.activity.info()
        attributes: Attributes = {"headwater.workflow_id": info.workflow_id or "", "headwater.attempt": info.attempt}
        with self._tracer.begin(
            f"activity {info.activity_type}", SpanKind.CONSUMER, parent=parent, attributes=attributes
        ) as span:
            try:
                return await super().execute_activity(input)
            except Exception as failure:
                span.fail(outcome_of(failure))
                raise


class _TracedWorkflow(WorkflowInboundInterceptor):
    tracer: Tracer
    span: SpanContext
    database: str

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_TracedCalls(outbound, self))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        info = temporalio.workflow.info()
        parent = span_in(input.headers)
        self.database = str(getattr(input.args[0], "database", "") or "") if input.args else ""
        digest = sha256(info.run_id.encode()).digest()
        trace_id = digest[:16] if parent is None else parent.trace_id
        self.span = SpanContext(trace_id, digest[16:24], self.tracer.decide(trace_id, parent))
        try:
            result = await super().execute_workflow(input)
        except ContinueAsNewError:
            self._end(parent, "")
            raise
        except FailureError as failure:
            self._end(parent, "cancelled" if is_cancelled_exception(failure) else type(failure).__name__)
            raise
        self._end(parent, "")
        return result

    def _end(self, parent: SpanContext | None, error: str) -> None:
        if temporalio.workflow.unsafe.is_replaying() or not self.span.sampled:
            return
        info = temporalio.workflow.info()
        span = self.tracer.resume(
            self.span,
            f"workflow {info.workflow_type}",
            SpanKind.CONSUMER,
            parent=parent,
            began=info.start_time,
        )
        span.set("headwater.workflow_id", info.workflow_id)
        span.set("headwater.run_id", info.run_id)
        if self.database:
            span.set("headwater.database", self.database)
        if error:
            span.fail(error)
        span.end()


class _TracedCalls(WorkflowOutboundInterceptor):
    """Passes the workflow's span on."""

    def __init__(self, next: WorkflowOutboundInterceptor, workflow: _TracedWorkflow) -> None:
        super().__init__(next)
        self._workflow = workflow

    def start_activity(self, input: StartActivityInput) -> temporalio.workflow.ActivityHandle[Any]:
        input.headers = {**input.headers, **header_of(self._workflow.span)}
        return super().start_activity(input)

    def start_local_activity(self, input: StartLocalActivityInput) -> temporalio.workflow.ActivityHandle[Any]:
        input.headers = {**input.headers, **header_of(self._workflow.span)}
        return super().start_local_activity(input)

    async def start_child_workflow(
        self, input: StartChildWorkflowInput
    ) -> temporalio.workflow.ChildWorkflowHandle[Any, Any]:
        input.headers = {**input.headers, **header_of(self._workflow.span)}
        return await super().start_child_workflow(input)

    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:
        input.headers = {**input.headers, **header_of(self._workflow.span)}
        super().continue_as_new(input)
