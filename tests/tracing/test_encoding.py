"""What is sent reads, by OpenTelemetry's own classes, as what was meant."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from app.core.tracing.context import SpanContext, parse_traceparent
from app.core.tracing.encoding import (
    Value,
    encoded_attributes,
    encoded_request,
    encoded_resource,
    encoded_scope,
    encoded_span,
)
from app.core.tracing.sampling import sampler_of
from tests.support.together import together

_CONTEXTS = st.builds(
    SpanContext,
    st.binary(min_size=16, max_size=16).filter(any),
    st.binary(min_size=8, max_size=8).filter(any),
    st.booleans(),
)
_VALUES = st.one_of(
    st.text(),
    st.text("é€𝄞\0", max_size=80),
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.floats(allow_nan=False),
)
_MOMENTS = st.integers(0, 2**63 - 1)


@given(
    own=_CONTEXTS,
    parent=st.none() | st.binary(min_size=8, max_size=8),
    links=st.lists(_CONTEXTS, max_size=2),
    attributes=st.dictionaries(st.sampled_from(["a", "b.c", "http.route", "headwater.spans_left_out"]), _VALUES),
    moments=st.tuples(_MOMENTS, _MOMENTS),
    remote=st.booleans(),
    failed=st.booleans(),
)
def test_every_span_reads_as_it_was_meant(
    own: SpanContext,
    parent: bytes | None,
    links: list[SpanContext],
    attributes: dict[str, Value],
    moments: tuple[int, int],
    remote: bool,
    failed: bool,
) -> None:
    span = encoded_span(
        own,
        name="GET /é",
        kind=2,
        began=moments[0],
        ended=moments[1],
        parent=parent,
        remote=remote,
        attributes=encoded_attributes(attributes),
        links=links,
        failed=failed,
    )
    request = encoded_request(encoded_resource({"service.name": "x" * 300}), encoded_scope("s", "1"), [span, span])
    (part,) = ExportTraceServiceRequest.FromString(request).resource_spans
    assert part.resource.attributes[0].value.string_value == "x" * 256
    assert (part.scope_spans[0].scope.name, part.scope_spans[0].scope.version) == ("s", "1")
    seen, again = part.scope_spans[0].spans
    assert seen == again
    assert (seen.trace_id, seen.span_id, seen.parent_span_id) == (own.trace_id, own.span_id, parent or b"")
    assert (seen.name, seen.kind) == ("GET /é", Span.SpanKind.SPAN_KIND_SERVER)
    assert (seen.start_time_unix_nano, seen.end_time_unix_nano) == moments
    assert (seen.status.code, seen.status.message) == (2 if failed else 0, "")
    assert seen.flags == 0x101 | (0x200 if remote else 0)
    assert [(one.trace_id, one.span_id, one.flags & 1) for one in seen.links] == [
        (link.trace_id, link.span_id, link.sampled) for link in links
    ]
    values = {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in seen.attributes}
    assert values.keys() == attributes.keys()
    for key, value in attributes.items():
        assert values[key] == (value[:256] if isinstance(value, str) else value)
        assert type(values[key]) is type(value)


@given(_CONTEXTS)
def test_what_is_passed_on_is_read_again(context: SpanContext) -> None:
    assert parse_traceparent(context.traceparent) == context


@together(
    "text",
    [
        None,
        "",
        "00-" + "0" * 32 + "-" + "1" * 16 + "-01",
        "00-" + "1" * 32 + "-" + "0" * 16 + "-01",
        "ff-" + "1" * 32 + "-" + "1" * 16 + "-01",
        "00-" + "A" * 32 + "-" + "1" * 16 + "-01",
        "00-" + "1" * 32 + "-" + "1" * 16 + "-01-more",
        "00-" + "1" * 32 + "-" + "1" * 16 + "-0g",
        "00-" + "\uff11" * 32 + "-" + "1" * 16 + "-01",
        "x" * 100_000,
    ],
)
def test_what_is_no_traceparent_is_none(text: str | None) -> None:
    assert parse_traceparent(text) is None


@pytest.mark.parametrize(
    ("name", "root", "of_recorded", "of_dropped"),
    [
        ("always_on", True, True, True),
        ("always_off", False, False, False),
        ("parentbased_always_on", True, True, False),
        ("parentbased_always_off", False, True, False),
    ],
)
def test_samplers_decide_as_they_are_named(name: str, root: bool, of_recorded: bool, of_dropped: bool) -> None:
    sampler, trace = sampler_of(name, 1), bytes([7] * 16)
    parents = (None, SpanContext(trace, bytes(8), True), SpanContext(trace, bytes(8), False))
    assert [sampler(trace, parent) for parent in parents] == [root, of_recorded, of_dropped]


@pytest.mark.parametrize("name", ["traceidratio", "parentbased_traceidratio"])
def test_a_ratio_records_that_part_of_all_traces_and_the_same_everywhere(name: str) -> None:
    traces = [bytes(8) + (number * (2**64 // 1000)).to_bytes(8, "big") for number in range(1000)]
    here, there = sampler_of(name, 0.25), sampler_of(name, 0.25)
    recorded = [trace for trace in traces if here(trace, None)]
    assert math.isclose(len(recorded), 250, abs_tol=1)
    assert recorded == [trace for trace in traces if there(trace, None)]
    assert not any(sampler_of(name, 0)(trace, None) for trace in traces)
    assert all(sampler_of(name, 1)(trace, None) for trace in traces)
