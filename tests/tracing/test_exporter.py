"""Whatever the collector does, nothing waits for it, and little is kept for it."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from prometheus_client import REGISTRY

from app.core.tracing import exporter
from app.core.tracing.exporter import tracer_of
from app.core.tracing.settings import TracingSettings
from app.core.tracing.spans import SpanKind, Tracer
from app.local.ports import LOOPBACK
from tests.support.collector import PATH, Collector, read
from tests.support.ports import free_port
from tests.support.receiver import Reply, answer, hang, receiver, reset
from tests.support.waiting import LIMIT_SECONDS, until


@pytest_asyncio.fixture
async def own_collector(tmp_path: Path) -> AsyncIterator[Collector]:
    async with receiver(tmp_path) as server:
        yield Collector(server)


def made(collector: Collector, **changed: object) -> Tracer:
    settings = TracingSettings.load(collector.environ)
    assert settings is not None
    tracer = tracer_of(msgspec.structs.replace(settings, **changed), "headwater-test")
    assert tracer is not None
    return tracer


def count(outcome: str) -> float:
    return REGISTRY.get_sample_value("headwater_trace_spans_total", {"outcome": outcome}) or 0


def record(tracer: Tracer, number: int) -> None:
    for _ in range(number):
        with tracer.begin("x", SpanKind.INTERNAL):
            pass


async def test_spans_arrive_in_batches_with_the_headers_that_are_set(own_collector: Collector) -> None:
    tracer = made(own_collector, batch=100, headers=(("x-key", "hush"),), resource=(("zone", "a"),), gzip=False)
    sent = count("sent")
    async with tracer.destination.running():
        record(tracer, 250)
        # Not what has come: a batch whose answer is missing at the end is sent again.
        await until(lambda: count("sent") == sent + 250)
    requests = own_collector.receiver.of(PATH)
    assert len(requests) == 3
    assert {one.headers["x-key"] for one in requests} == {"hush"}
    assert {one.headers["content-type"] for one in requests} == {"application/x-protobuf"}
    assert {one.service for one in own_collector.spans()} == {"headwater-test"}
    assert own_collector.receiver.connections == 1


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end too: two seconds may be over before a crowded machine has answered."""
    monkeypatch.setattr(exporter, "CLOSE_SECONDS", LIMIT_SECONDS)


@pytest.mark.usefixtures("unhurried")
async def test_what_is_left_is_sent_when_the_process_ends(own_collector: Collector) -> None:
    tracer = made(own_collector, delay=3600)
    async with tracer.destination.running():
        record(tracer, 3)
    assert len(own_collector.spans()) == 3


@pytest.mark.usefixtures("unhurried")
async def test_compressed_spans_read_the_same(own_collector: Collector) -> None:
    tracer = made(own_collector, gzip=True)
    async with tracer.destination.running():
        record(tracer, 3)
    (request,) = own_collector.receiver.of(PATH)
    assert request.headers["content-encoding"] == "gzip"
    assert len(read(gzip.decompress(request.body))) == 3


@pytest.mark.parametrize("reply", [answer(503), reset], ids=["busy", "reset"])
async def test_a_batch_is_sent_again_to_a_collector_that_comes_back(own_collector: Collector, reply: Reply) -> None:
    own_collector.receiver.replies[PATH] = reply
    tracer = made(own_collector)
    async with tracer.destination.running():
        record(tracer, 3)
        await until(lambda: len(own_collector.receiver.of(PATH)) >= 1)
        del own_collector.receiver.replies[PATH]
        refused = len(own_collector.receiver.of(PATH))
        await until(lambda: len(own_collector.receiver.of(PATH)) > refused)
    assert len({request.body for request in own_collector.receiver.of(PATH)}) == 1


async def test_what_a_collector_refuses_is_not_sent_again(own_collector: Collector) -> None:
    own_collector.receiver.replies[PATH] = answer(400)
    tracer, dropped = made(own_collector), count("dropped")
    async with tracer.destination.running():
        record(tracer, 3)
        await until(lambda: count("dropped") == dropped + 3)
    assert len(own_collector.receiver.of(PATH)) == 1


@pytest.mark.parametrize("reply", [hang, answer(500), None], ids=["hangs", "fails", "away"])
async def test_nothing_waits_for_a_collector_that_does_not_work(own_collector: Collector, reply: Reply | None) -> None:
    """And what waits for it stays bounded."""
    if reply is not None:
        own_collector.receiver.replies[PATH] = reply
    tracer, dropped = made(own_collector, queue=50, batch=10, timeout=3600), count("dropped")
    if reply is None:
        settings = TracingSettings(endpoint=f"http://{LOOPBACK}:{free_port()}{PATH}", queue=50, batch=10, delay=0.05)
        away = tracer_of(settings, "headwater-test")
        assert away is not None
        tracer = away
    async with asyncio.timeout(60), tracer.destination.running():
        record(tracer, 1000)
        assert count("dropped") >= dropped + 940
    # The end itself is bounded: without that bound the test would take as long as the collector hangs.
    assert count("dropped") == dropped + 1000
