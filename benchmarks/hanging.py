"""`python -m benchmarks.hanging`: the cost of deliveries that wait for receivers which hang.

On its own servers, like `benchmarks.webhooks`. Many endpoints of several teams accept connections and never answer,
until all of their deliveries wait. Measured are the processor time of Temporal, the workers and our PostgreSQL,
compared with the same servers at rest; how soon a healthy endpoint gets its events; and what arrives when the receivers
answer again. The receivers are in this process, which doesn't count.
"""

import argparse
import asyncio
import os
import platform
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from app.store.session import fetch
from app.webhooks.circuit import BREAKS_AT
from benchmarks.cold_create import quantile
from benchmarks.delivery_servers import DeliveryServers, delivery_servers
from benchmarks.processor_time import processor_seconds, spent
from benchmarks.webhooks import arrivals, emitted
from tests.support.client import Caller
from tests.support.receiver import answer, hang
from tests.support.webhooks import emit, subscribed

_SETTLE_SECONDS = 20
_SCHEDULE = ",".join(["0", "5", *["60"] * 8])
"""Flatter than the default: otherwise the few that hung three times would take half an hour at the end."""
_MAX_SECONDS = 1800


class _Arguments(argparse.Namespace):
    teams: int
    endpoints: int
    deliveries: int
    seconds: int
    windows: int
    rate: int
    longest_probe: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hanging", description=__doc__)
    parser.add_argument("--teams", type=int, default=10, help="default: %(default)s")
    parser.add_argument("--endpoints", type=int, default=200, help="of all teams together (default: %(default)s)")
    parser.add_argument("--deliveries", type=int, default=10_000, help="that wait (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=60, help="of each measurement (default: %(default)s)")
    parser.add_argument("--windows", type=int, default=5, help="measurements while all wait (default: %(default)s)")
    parser.add_argument("--rate", type=int, default=40, help="events a second beside them (default: %(default)s)")
    parser.add_argument("--longest-probe", type=float, default=300, help="the setting (default: %(default)s)")
    given = parser.parse_args(namespace=_Arguments())
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    asyncio.run(_run(given))


async def _run(given: _Arguments) -> None:
    settings = {"WEBHOOK_LONGEST_PROBE_SECONDS": str(given.longest_probe), "WEBHOOK_RETRY_SCHEDULE": _SCHEDULE}
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        async with delivery_servers(Path(folder), **settings) as servers:
            callers = await _subscribe(servers, given)
            well = await servers.running.api.caller()
            await subscribed(well, servers.target.url("/well"))
            await emitted(well, 10, 3)  # code is loaded, connections open
            await asyncio.sleep(_SETTLE_SECONDS)
            rest = await _processor_time(servers, given.seconds)
            print(f"\nprocessor time, % of a core, over {given.seconds} s each\n")
            print("| state | probes | " + " | ".join(rest) + " | all | above rest |")
            print("|-------|--------|" + "---|" * (len(rest) + 2))
            _show("at rest", 0, rest, rest)
            began = time.time()
            await _all_wait(callers, given)
            print(f"| all {given.deliveries} wait, after {time.time() - began:.0f} s |" + " |" * (len(rest) + 3))
            for window in range(given.windows):
                probes = await _attempts()
                seen = await _processor_time(servers, given.seconds)
                _show(f"window {window + 1}", await _attempts() - probes, seen, rest)
            await _beside(servers, well, given)
            await _return(servers, given)


async def _subscribe(servers: DeliveryServers, given: _Arguments) -> list[Caller]:
    callers = [await servers.running.api.caller() for _ in range(given.teams)]
    for number in range(given.endpoints):
        where = f"/hanging/{number}"
        servers.target.replies[where] = hang
        await subscribed(callers[number % given.teams], servers.target.url(where))
    return callers


async def _processor_time(servers: DeliveryServers, seconds: int) -> dict[str, float]:
    """By service, in percent of a core."""
    before, began = processor_seconds(servers.processes), time.monotonic()
    await asyncio.sleep(seconds)
    took = time.monotonic() - began
    used = spent(before, processor_seconds(servers.processes))
    return {part: 100 * used.get(part, 0.0) / took for part in sorted(servers.processes)}


def _show(state: str, probes: int, seen: dict[str, float], rest: dict[str, float]) -> None:
    whole = sum(seen.values())
    parts = " | ".join(f"{seen[part]:.1f}" for part in rest)
    print(f"| {state} | {probes} | {parts} | {whole:.1f} | {whole - sum(rest.values()):+.1f} |", flush=True)


async def _all_wait(callers: list[Caller], given: _Arguments) -> None:
    for number in range(given.deliveries // given.endpoints):
        for caller in callers:
            await emit(caller, number)

    async def look() -> bool:
        (row,) = await fetch(
            "SELECT (SELECT count(*) FROM webhook_deliveries WHERE waiting) AS waiting,"
            " (SELECT count(*) FROM webhook_endpoints WHERE slow_failures >= $1) AS broken",
            BREAKS_AT,
        )
        return (row["waiting"], row["broken"]) == (given.deliveries, given.endpoints)

    await _until(look)


async def _beside(servers: DeliveryServers, well: Caller, given: _Arguments) -> None:
    """An endpoint that answers, while all others hang."""
    before = len(servers.target.of("/well"))
    committed = await emitted(well, given.rate, given.seconds)

    async def look() -> bool:
        return len(servers.target.of("/well")) >= before + len(committed)

    await _until(look)
    times = arrivals(servers.target.of("/well")[before:], committed)
    shown = ", ".join(f"{name} {1000 * quantile(times, at):.0f} ms" for name, at in (("p50", 0.5), ("p95", 0.95)))
    print(f"\nbeside them, {given.rate} events a second: {shown}, max {1000 * times[-1]:.0f} ms", flush=True)


async def _return(servers: DeliveryServers, given: _Arguments) -> None:
    """The receivers answer again."""
    before, began = len(servers.target.received), time.time()
    for number in range(given.endpoints):
        servers.target.replies[f"/hanging/{number}"] = answer(200)

    async def look() -> bool:
        return not await fetch("SELECT 1 FROM webhook_deliveries WHERE status = 'pending' LIMIT 1")

    await _until(look)
    # Attempts in progress at that moment were answered by the hanging receivers.
    got = servers.target.received[before:]
    times = Counter(one.headers["webhook-id"] for one in got)
    moments = sorted(one.at - began for one in got)
    print(
        f"\nwhen the receivers are back: {len(times)} of {given.deliveries} arrive, {len(got) - len(times)} twice,"
        f" half of them after {quantile(moments, 0.5):.0f} s, the last after {moments[-1]:.0f} s",
        flush=True,
    )


async def _attempts() -> int:
    rows = await fetch("SELECT count(*) FROM webhook_attempts")
    return int(rows[0]["count"])


async def _until(look: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.time() + _MAX_SECONDS
    while not await look():
        if time.time() > deadline:
            raise SystemExit("it took too long")
        await asyncio.sleep(0.5)


if __name__ == "__main__":
    main()
