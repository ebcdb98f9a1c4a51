"""Where a request's trace begins, and what its span says."""

import gc
import logging
from collections.abc import Iterator
from uuid import uuid4

import pytest
import pytest_asyncio

from app.core.log_values import add_trace_id
from app.core.tracing.context import current
from app.core.tracing.sampling import sampler_of
from app.core.tracing.spans import SpanKind, Tracer, span
from tests.support.client import Caller
from tests.support.in_process import LoneApi, lone_api
from tests.tracing.kept import Kept

TRACE, SPAN = "a" * 32, "b" * 16
GIVEN = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
TESTS = "127.0.0.1"
"""Which address the tests' requests come from."""


@pytest_asyncio.fixture(scope="module")
async def caller(traced_api: LoneApi) -> Caller:
    return await traced_api.caller()


@pytest.fixture(autouse=True)
def nothing_before(kept: Kept) -> Iterator[None]:
    kept.seen()
    yield
    assert current.get() is None


async def test_a_request_begins_a_trace_with_ids_and_numbers_alone(caller: Caller, kept: Kept) -> None:
    uuid = str(uuid4())
    answer = await caller.get(f"/databases/{uuid}?wait=false&name=secret-name")
    request = next(one for one in kept.seen() if one.parent == "")
    assert request.name == "GET /api/v1/databases/{uuid}"
    assert request.attributes == {
        "http.request.method": "GET",
        "http.route": "/api/v1/databases/{uuid}",
        "http.response.status_code": answer.status_code,
        "headwater.request_id": answer.headers["x-request-id"],
        "headwater.key_id": caller.key_id,
        "headwater.team_id": caller.team_id,
        "headwater.resource": uuid,
        "error.type": answer.json()["error"]["code"],
    }
    assert not request.failed, "the client's fault"


async def test_what_a_stranger_says_becomes_a_link(caller: Caller, kept: Kept) -> None:
    await caller.get("/me", headers=GIVEN)
    (request,) = (one for one in kept.seen() if one.name == "GET /api/v1/me")
    assert request.trace != TRACE
    assert (request.parent, request.links) == ("", [(TRACE, SPAN)])


async def test_nobody_outside_keeps_a_request_from_being_recorded(caller: Caller, kept: Kept) -> None:
    await caller.get("/me", headers={"traceparent": f"00-{TRACE}-{SPAN}-00"})
    assert [one.name for one in kept.seen()] == ["GET /api/v1/me"]


async def test_a_trusted_proxy_s_trace_goes_on(control_dsn: str, kept: Kept) -> None:
    tracer = Tracer(kept, sampler_of("parentbased_always_on", 1))
    async with lone_api(control_dsn, tracer=tracer, trusted_proxies=(f"{TESTS}/32",)) as api:
        caller = await api.caller()
        kept.seen()
        await caller.get("/me", headers=GIVEN)
        (request,) = kept.seen()
        assert (request.trace, request.parent, request.links) == (TRACE, SPAN, [])
        await caller.get("/me", headers={"traceparent": f"00-{TRACE}-{SPAN}-00"})
        assert kept.seen() == []


@pytest.mark.parametrize(
    "value",
    ["", "nonsense", "00-" + "0" * 32 + "-" + "1" * 16 + "-01", "é" * 55, "x" * 4000],
    ids=["empty", "words", "no trace", "not ascii", "long"],
)
async def test_what_is_no_traceparent_is_left_out(caller: Caller, kept: Kept, value: str) -> None:
    answer = await caller.get("/me", headers={b"traceparent": value.encode()})
    assert answer.status_code == 200
    (request,) = kept.seen()
    assert (request.parent, request.links) == ("", [])


async def test_a_path_that_no_route_has_is_not_quoted(caller: Caller, kept: Kept) -> None:
    await caller.request("BREW", "/secret-name/secret-name", params={"secret-name": "1"})
    assert [one.name for one in kept.seen()] == ["other unmatched"]


async def test_probes_are_not_traced(traced_api: LoneApi, kept: Kept) -> None:
    await traced_api.http.get("/health/live")
    await traced_api.http.get("/health/ready")
    assert kept.seen() == []


def test_lines_have_the_trace_that_they_belong_to(kept: Kept) -> None:
    tracer = Tracer(kept, sampler_of("always_on", 1))
    with tracer.begin("x", SpanKind.SERVER) as first:
        line = add_trace_id(logging.getLogger(), "info", {})
    assert line == {"trace_id": first.context.trace_id.hex()}
    assert add_trace_id(logging.getLogger(), "info", {}) == {}


def test_what_has_a_thousand_steps_leaves_room_for_others(kept: Kept) -> None:
    tracer = Tracer(kept, sampler_of("always_on", 1))
    with tracer.begin("first", SpanKind.SERVER):
        for _ in range(1000):
            with span("step"), span("within"):
                pass
    spans = kept.seen()
    assert len(spans) == 129
    assert spans[-1].attributes["headwater.spans_left_out"] == 2000 - 128


def test_an_error_is_named_and_never_quoted(kept: Kept) -> None:
    tracer = Tracer(kept, sampler_of("always_on", 1))
    with pytest.raises(ValueError, match="hush"), tracer.begin("first", SpanKind.SERVER), span("step"):
        raise ValueError("hush-hush")
    spans = kept.seen()
    assert [(one.failed, one.attributes) for one in spans] == [(True, {"error.type": "ValueError"})] * 2
    assert "hush" not in str(spans)


def test_spans_leave_nothing_to_the_collector_of_cycles(kept: Kept) -> None:
    tracer = Tracer(kept, sampler_of("always_on", 1))
    gc.collect()
    gc.disable()
    try:
        for _ in range(100):
            with tracer.begin("request", SpanKind.SERVER), span("step"):
                pass
        assert gc.collect() < 100
    finally:
        gc.enable()
