"""Creating many databases concurrently: through the service, and with the engine's own statements at the best
concurrency."""

import asyncio
import time
import uuid
from collections.abc import Iterator
from contextlib import AsyncExitStack

import httpx
import msgspec

from app.local.stack_file import StackFile, StackHost
from benchmarks.processor_time import processor_seconds, spent
from benchmarks.raw import Raw, raw_on

_CONCURRENCIES = (1, 2, 4, 8, 12)
_WARM_UP = 2


class Burst(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a burst; `processor` has the seconds of processor time for each service of the stack."""

    seconds: float
    processor: dict[str, float]
    concurrency: int | None = None


async def service_burst(stack: StackFile, count: int) -> Burst:
    """From the first create to the last database that is active."""
    headers = {"Authorization": f"Bearer {stack.api_key}"}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(
        base_url=f"{stack.api_url}/api/v1", headers=headers, timeout=300, trust_env=False, limits=limits
    ) as http:
        for _ in range(_WARM_UP):
            await _create(http)
        before, started = processor_seconds(stack.processes), time.perf_counter()
        await asyncio.gather(*(_create(http) for _ in range(count)))
        seconds = time.perf_counter() - started
        return Burst(seconds=seconds, processor=spent(before, processor_seconds(stack.processes)))


async def raw_burst(stack: StackFile, host: StackHost, count: int) -> Burst:
    """At the concurrency that was fastest."""
    bursts = [await _raw_burst(stack, host, count, concurrency) for concurrency in _CONCURRENCIES]
    return min(bursts, key=lambda burst: burst.seconds)


async def _create(http: httpx.AsyncClient) -> None:
    answer = await http.post(
        "/databases?wait=true&timeout=120", json={"name": "burst"}, headers={"Idempotency-Key": str(uuid.uuid4())}
    )
    if answer.status_code != 201:
        raise RuntimeError(f"the create was answered with {answer.status_code}: {answer.text}")


async def _raw_burst(stack: StackFile, host: StackHost, count: int, concurrency: int) -> Burst:
    async with AsyncExitStack() as opened:
        connections = [await opened.enter_async_context(raw_on(host)) for _ in range(concurrency)]
        left = iter(range(count))
        before, started = processor_seconds(stack.processes), time.perf_counter()
        await asyncio.gather(*(_make_some(connection, left) for connection in connections))
        seconds = time.perf_counter() - started
        used = spent(before, processor_seconds(stack.processes))
        return Burst(seconds=seconds, processor=used, concurrency=concurrency)


async def _make_some(connection: Raw, left: Iterator[int]) -> None:
    for _ in left:
        await connection.time_one()
