"""A collector of traces: a real HTTPS server, which reads what it gets with OpenTelemetry's own classes."""

from dataclasses import dataclass
from typing import Any

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.receiver import Receiver
from tests.support.waiting import until

PATH = "/v1/traces"


class SeenSpan(msgspec.Struct, frozen=True, kw_only=True):
    service: str
    trace: str
    id: str
    parent: str
    """Empty for the first of its trace."""
    name: str
    attributes: dict[str, Any]
    links: list[tuple[str, str]]
    failed: bool
    began: int
    ended: int


@dataclass
class Collector:
    receiver: Receiver

    @property
    def environ(self) -> dict[str, str]:
        """Has a process send everything here, soon."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.receiver.url(""),
            "OTEL_EXPORTER_OTLP_CERTIFICATE": str(self.receiver.ca_file),
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            # The tests' process answers: that it stalls is no reason to send a batch twice.
            "OTEL_EXPORTER_OTLP_TIMEOUT": "120000",
        }

    def spans(self) -> list[SeenSpan]:
        """All that have come so far."""
        return [span for one in self.receiver.of(PATH) for span in read(one.body)]

    def of_trace(self, trace: str) -> list[SeenSpan]:
        return [span for span in self.spans() if span.trace == trace]

    async def find(self, name: str, **attributes: Any) -> SeenSpan:
        """Waits for a span with that name and those attributes, whose dots are written as `__`."""
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}

        def found() -> SeenSpan | None:
            return next(
                (one for one in self.spans() if one.name == name and wanted.items() <= one.attributes.items()), None
            )

        await until(lambda: found() is not None)
        span = found()
        assert span is not None
        return span


def read(body: bytes) -> list[SeenSpan]:
    """The spans of one request."""
    request = ExportTraceServiceRequest.FromString(body)
    return [
        SeenSpan(
            service=_values(part.resource.attributes).get("service.name", ""),
            trace=span.trace_id.hex(),
            id=span.span_id.hex(),
            parent=span.parent_span_id.hex(),
            name=span.name,
            attributes=_values(span.attributes),
            links=[(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
            failed=span.status.code == 2,
            began=span.start_time_unix_nano,
            ended=span.end_time_unix_nano,
        )
        for part in request.resource_spans
        for scope in part.scope_spans
        for span in scope.spans
    ]


def _values(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


def path_to(spans: list[SeenSpan], span: SeenSpan) -> list[str]:
    """The names from the first span of the trace down to this one, as far as they have come."""
    known = {one.id: one for one in spans}
    names = [span.name]
    while (above := known.get(span.parent)) is not None:
        names.append(above.name)
        span = above
    return names[::-1]
