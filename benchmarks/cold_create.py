"""The time of a cold create with `wait=true`, compared with the engine's own statements on the same server."""

import asyncio
import math
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from app.local.stack_file import StackFile, StackHost
from benchmarks.raw import raw_on

_WARM_UP = 3
"""Pairs that don't count: they open connections and load code."""


@dataclass(frozen=True)
class Pairs:
    """Seconds for each pair: the API's create, and the statements right after it."""

    engine: str
    api: list[float]
    raw: list[float]

    @property
    def ratio(self) -> float:
        """The ratio of the medians."""
        return quantile(self.api, 0.5) / quantile(self.raw, 0.5)

    @property
    def pair_ratios(self) -> list[float]:
        return [api / raw for api, raw in zip(self.api, self.raw, strict=True)]


async def measure(stack: StackFile, host: StackHost, pairs: int, pause: float = 0) -> Pairs:
    """Measures alternately, so that both meet the same conditions, with `pause` seconds before each pair: without one a
    create meets what the one before has left to do. The databases stay until the stack ends: removing them would
    disturb the next measurement."""
    result = Pairs(host.engine, [], [])
    headers = {"Authorization": f"Bearer {stack.api_key}"}
    async with (
        httpx.AsyncClient(base_url=f"{stack.api_url}/api/v1", headers=headers, timeout=60, trust_env=False) as http,
        raw_on(host) as raw,
    ):
        for number in range(_WARM_UP + pairs):
            await asyncio.sleep(pause)
            api_seconds, raw_seconds = await _create(http, host.engine), await raw.time_one()
            if number >= _WARM_UP:
                result.api.append(api_seconds)
                result.raw.append(raw_seconds)
    return result


async def _create(http: httpx.AsyncClient, engine: str) -> float:
    body = {"name": "benchmark", "db_type": engine}
    started = time.perf_counter()
    made = await http.post("/databases?wait=true", json=body, headers={"Idempotency-Key": str(uuid.uuid4())})
    took = time.perf_counter() - started
    if made.status_code != 201:
        raise RuntimeError(f"the create was answered with {made.status_code}: {made.text}")
    return took


def quantile(values: Sequence[float], fraction: float) -> float:
    """The nearest-rank quantile."""
    return sorted(values)[max(0, math.ceil(fraction * len(values)) - 1)]
