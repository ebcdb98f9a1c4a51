"""Many databases at once: through the service, and with the engine's own statements at the best concurrency."""

import asyncio
import time
import uuid
from collections.abc import Iterator
from contextlib import AsyncExitStack

import httpx

from app.local.stack_file import StackFile, StackHost
from benchmarks.raw import Raw, raw_on

_CONCURRENCIES = (1, 2, 4, 8, 12)
_WARM_UP = 2


async def service_burst(stack: StackFile, count: int) -> float:
    """Seconds from the first create to the last database that is active."""
    headers = {"Authorization": f"Bearer {stack.api_key}"}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(
        base_url=f"{stack.api_url}/api/v1", headers=headers, timeout=300, trust_env=False, limits=limits
    ) as http:
        for _ in range(_WARM_UP):
            await _create(http)
        started = time.perf_counter()
        await asyncio.gather(*(_create(http) for _ in range(count)))
        return time.perf_counter() - started


async def raw_burst(host: StackHost, count: int) -> tuple[int, float]:
    """The concurrency that was best, and its seconds for so many."""
    took = {concurrency: await _raw_burst(host, count, concurrency) for concurrency in _CONCURRENCIES}
    best = min(took, key=lambda concurrency: took[concurrency])
    return best, took[best]


async def _create(http: httpx.AsyncClient) -> None:
    answer = await http.post(
        "/databases?wait=true&timeout=120", json={"name": "burst"}, headers={"Idempotency-Key": str(uuid.uuid4())}
    )
    if answer.status_code != 201:
        raise RuntimeError(f"the create was answered with {answer.status_code}: {answer.text}")


async def _raw_burst(host: StackHost, count: int, concurrency: int) -> float:
    async with AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(raw_on(host)) for _ in range(concurrency)]
        left = iter(range(count))
        started = time.perf_counter()
        await asyncio.gather(*(_make_some(connection, left) for connection in connections))
        return time.perf_counter() - started


async def _make_some(connection: Raw, left: Iterator[int]) -> None:
    for _ in left:
        await connection.time_one()
