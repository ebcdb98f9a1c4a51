"""How a trace goes through Temporal: what starts a workflow writes its span into a header of the start, from which the
workflow's history keeps it."""

from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.client import Interceptor, OutboundInterceptor, StartWorkflowInput, WorkflowHandle
from temporalio.exceptions import WorkflowAlreadyStartedError

from app.core.tracing.context import SpanContext, current_origin, parse_traceparent
from app.core.tracing.spans import SpanKind, Tracer

HEADER = "headwater-traceparent"


def header_of(span: SpanContext) -> dict[str, Payload]:
    return {HEADER: Payload(data=span.traceparent.encode())}


def span_in(headers: Any) -> SpanContext | None:
    """The span that the headers name; None where they name none."""
    payload = headers.get(HEADER)
    return None if payload is None else parse_traceparent(payload.data.decode("ascii", "replace"))


class TracedStarts(Interceptor):
    """Traces a client's starts of workflows that `originating` puts into a trace."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _TracedClient(next, self._tracer)


class _TracedClient(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, tracer: Tracer) -> None:
        super().__init__(next)
        self._tracer = tracer

    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:
        origin = current_origin()
        if origin is None:
            return await super().start_workflow(input)
        with self._tracer.begin(f"start {input.workflow}", SpanKind.PRODUCER, parent=origin) as span:
            span.set("headwater.workflow_id", input.id)
            input.headers = {**input.headers, **header_of(span.context)}
            try:
                return await super().start_workflow(input)
            except WorkflowAlreadyStartedError:
                # An earlier start succeeded without its answer.
                span.set("error.type", WorkflowAlreadyStartedError.__name__)
                raise
