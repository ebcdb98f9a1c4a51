"""`python -m benchmarks.webhooks`: from the commit of an event to its arrival, at growing rates of events.

On servers of its own, durable as the embedded stack's: one control PostgreSQL, Temporal with its state in a file, one
control worker and one webhook worker. The receiver is a real HTTPS server in this process.
"""

import argparse
import asyncio
import json
import os
import platform
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.cold_create import quantile
from benchmarks.delivery_servers import delivery_servers
from benchmarks.processor_time import processor_seconds, spent
from tests.support.client import Caller
from tests.support.receiver import Received, Receiver
from tests.support.webhooks import emit, subscribed

_RATES = (20, 40, 60, 80, 100)
_SECONDS = 20
_DRAIN_SECONDS = 120


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.webhooks", description=__doc__)
    parser.add_argument("--rates", type=int, nargs="+", default=_RATES, help="events a second (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=_SECONDS, help="of each rate (default: %(default)s)")
    parser.add_argument("--endpoints", type=int, default=1, help="of the one team (default: %(default)s)")
    given = parser.parse_args()
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    asyncio.run(_run(given.rates, given.seconds, given.endpoints))


async def _run(rates: list[int], seconds: int, endpoints: int) -> None:
    print(f"{seconds} s at each rate, {endpoints} endpoints\n")
    print("| events/s | deliveries | lost | twice | p50 | p95 | max | all arrived after | processor time of each |")
    print("|----------|------------|------|-------|-----|-----|-----|-------------------|------------------------|")
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        async with delivery_servers(Path(folder)) as servers:
            caller, target = await servers.running.api.caller(), servers.target
            for number in range(endpoints):
                await subscribed(caller, target.url(f"/{number}"))
            await _measure(caller, target, 10, 3, endpoints)  # code is loaded, connections open
            for rate in rates:
                before = processor_seconds(servers.processes)
                line = await _measure(caller, target, rate, seconds, endpoints)
                used = sum(spent(before, processor_seconds(servers.processes)).values())
                print(f"{line} {1000 * used / (rate * seconds * endpoints):.0f} ms |", flush=True)


async def _measure(caller: Caller, target: Receiver, rate: int, seconds: int, endpoints: int) -> str:
    target.received.clear()
    started = time.time()
    committed = await emitted(caller, rate, seconds)
    wanted = rate * seconds * endpoints
    deadline = time.time() + _DRAIN_SECONDS
    while len({got.headers["webhook-id"] for got in target.received}) < wanted and time.time() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    times = arrivals(target.received, committed)
    over = max(got.at for got in target.received) - started
    shown = [f"{1000 * quantile(times, at):.0f} ms" for at in (0.5, 0.95)]
    lost, twice = wanted - len(times), len(target.received) - len(times)
    return f"| {rate} | {wanted} | {lost} | {twice} | {' | '.join(shown)} | {1000 * times[-1]:.0f} ms | {over:.1f} s |"


async def emitted(caller: Caller, rate: int, seconds: int) -> dict[int, float]:
    """Commits events at this rate; returns the time of each commit, by number."""
    started = time.time()
    committed: dict[int, float] = {}

    async def one(number: int) -> None:
        await emit(caller, number)
        committed[number] = time.time()

    tasks = []
    for number in range(rate * seconds):
        await asyncio.sleep(max(0.0, started + number / rate - time.time()))
        tasks.append(asyncio.create_task(one(number)))
    await asyncio.gather(*tasks)
    return committed


def arrivals(received: Sequence[Received], committed: Mapping[int, float]) -> list[float]:
    """Seconds from the commit to the first arrival of each delivery, in order."""
    first: dict[str, float] = {}
    for got in received:
        number = json.loads(got.body)["data"]["number"]
        first.setdefault(got.headers["webhook-id"], max(got.at - committed[number], 0.0))
    return sorted(first.values())


if __name__ == "__main__":
    main()
