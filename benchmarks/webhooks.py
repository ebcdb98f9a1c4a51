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
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from app.local.ports import free_port
from app.local.postgres import PostgresService, find_programs
from app.local.services import Service, start
from app.local.temporal import TemporalService, find_program
from app.store.session import fetch
from benchmarks.cold_create import quantile
from tests.support.client import Caller
from tests.support.receiver import Receiver, receiver
from tests.support.webhooks import Delivering, delivering, emit, subscribed

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
    print("| events/s | deliveries | lost | twice | p50 | p95 | max | all arrived after |")
    print("|----------|------------|------|-------|-----|-----|-----|-------------------|")
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        async with _servers(Path(folder)) as (running, target):
            caller = await running.api.caller()
            for number in range(endpoints):
                await subscribed(caller, target.url(f"/{number}"))
            await _measure(caller, target, 10, 3, endpoints)  # code is loaded, connections open
            for rate in rates:
                print(await _measure(caller, target, rate, seconds, endpoints), flush=True)


async def _measure(caller: Caller, target: Receiver, rate: int, seconds: int, endpoints: int) -> str:
    target.received.clear()
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
    wanted = rate * seconds * endpoints
    deadline = time.time() + _DRAIN_SECONDS
    while len({got.headers["webhook-id"] for got in target.received}) < wanted and time.time() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    arrived: dict[str, float] = {}
    for got in target.received:
        number = json.loads(got.body)["data"]["number"]
        arrived.setdefault(got.headers["webhook-id"], max(got.at - committed[number], 0.0))
    times = sorted(arrived.values())
    over = max(got.at for got in target.received) - started
    shown = [f"{1000 * quantile(times, at):.0f} ms" for at in (0.5, 0.95)]
    lost, twice = wanted - len(times), len(target.received) - len(times)
    return f"| {rate} | {wanted} | {lost} | {twice} | {' | '.join(shown)} | {1000 * times[-1]:.0f} ms | {over:.1f} s |"


@asynccontextmanager
async def _servers(folder: Path) -> AsyncIterator[tuple[Delivering, Receiver]]:
    control = PostgresService(
        "control",
        folder=folder / "control",
        port=free_port(),
        log=folder / "control.log",
        programs=find_programs(None),
        max_connections=200,
    )
    temporal = TemporalService(
        "temporal",
        port=free_port(),
        ui_port=free_port(),
        log=folder / "temporal.log",
        program=find_program(),
        database=folder / "temporal.db",
    )
    async with AsyncExitStack() as stack:
        for service in (control, temporal):
            await _started(stack, service)
        target = await stack.enter_async_context(receiver(folder))
        made = await stack.enter_async_context(delivering(folder, control.dsn(), temporal, target))
        await fetch("SELECT 1")
        yield made, target


async def _started(stack: AsyncExitStack, service: Service) -> None:
    await service.prepare()
    child = await start(service)
    stack.push_async_callback(child.stop, timeout=5)


if __name__ == "__main__":
    main()
