"""`python -m benchmarks.pool`: creates from the warm pool compared with a transaction of our own database, and a
burst of creates without a pool compared with the engine's own statements."""

import argparse
import asyncio
import json
import os
import random
import time
import uuid
from urllib.parse import urlsplit

import asyncpg

from app.contracts.base import Engine
from app.local.stack_file import StackFile, StackHost
from benchmarks.burst import Burst, raw_burst, service_burst
from benchmarks.cold_create import quantile
from benchmarks.lean_http import LeanConnection
from benchmarks.processor_time import keep_apart
from benchmarks.stack import running_stack

_CREATES = 150
_POOL = 30
_PAUSE_SECONDS = (0.15, 0.35)
"""Before each create or transaction, so that the refill keeps up while others are measured. At random, or each would
meet the same step of it."""
_BURST = 60
_ROUNDS = 3
_READY = "SELECT count(*) FROM databases WHERE team_id IS NULL AND status = 'active' AND engine = 'postgres'"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pool", description=__doc__)
    parser.add_argument(
        "--creates", type=int, default=_CREATES, help="from the pool; 0 for none (default: %(default)s)"
    )
    parser.add_argument("--burst", type=int, default=_BURST, help="creates at once; 0 for none (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="of the burst (default: %(default)s)")
    arguments = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} CPUs\n")
    # The bursts first: after thousands of files were deleted, new ones cost more for some minutes on ext4.
    if arguments.burst:
        with running_stack() as stack:
            asyncio.run(_burst(stack, arguments.burst, arguments.rounds))
    if arguments.creates:
        with running_stack(_POOL) as stack:
            asyncio.run(_from_pool(stack, arguments.creates))
    print(f"\nload average {os.getloadavg()[0]:.1f}")


async def _from_pool(stack: StackFile, creates: int) -> None:
    control = await asyncpg.connect(stack.control_admin_dsn)
    await control.execute("CREATE TABLE benchmark (id bigserial PRIMARY KEY, name text, state text)")
    while await control.fetchval(_READY) < _POOL:  # noqa: ASYNC110 - another process fills it
        await asyncio.sleep(0.2)
    address = urlsplit(stack.api_url)
    assert address.hostname is not None
    assert address.port is not None
    ours, raw = [], []
    with LeanConnection(address.hostname, address.port) as api:
        # In a random order: what comes right after another finds two awake processors and warm caches.
        for create in random.sample([True, False], 2 * creates, counts=[creates, creates]):
            await asyncio.sleep(random.uniform(*_PAUSE_SECONDS))
            if create:
                ours.append(_time_create(api, stack.api_key))
            else:
                raw.append(await _time_transaction(control))
    await control.close()
    print("| from the pool | p50 | p95 | p99 | most |\n|---|---|---|---|---|")
    for name, times in (("a create", ours), ("three statements and their commit", raw)):
        print(f"| {name} | {' | '.join(f'{1000 * quantile(times, at):.1f} ms' for at in (0.5, 0.95, 0.99, 1))} |")
    ratio = quantile(ours, 0.5) / quantile(raw, 0.5)
    print(f"\nratio of p50 {ratio:.2f}, at most 2.8 is wanted; p99 under 15 ms is wanted\n")


def _time_create(api: LeanConnection, key: str) -> float:
    """Returns seconds. Raises `RuntimeError` when the pool didn't serve it."""
    headers = {
        "Authorization": f"Bearer {key}",
        "Idempotency-Key": str(uuid.uuid4()),
        "Content-Type": "application/json",
    }
    request = api.request("POST", "/api/v1/databases", headers, json.dumps({"name": "benchmark"}).encode())
    started = time.perf_counter()
    status, body = api.exchange(request)
    took = time.perf_counter() - started
    if status != 201:
        raise RuntimeError(f"the create was answered with {status}: {body.decode()}")
    return took


async def _time_transaction(control: asyncpg.Connection) -> float:
    started = time.perf_counter()
    async with control.transaction():
        row = await control.fetchval("INSERT INTO benchmark (name, state) VALUES ($1, 'new') RETURNING id", "benchmark")
        await control.execute("UPDATE benchmark SET state = 'made' WHERE id = $1", row)
        await control.execute("INSERT INTO benchmark (name, state) VALUES ($1, 'event')", "benchmark")
    return time.perf_counter() - started


async def _burst(stack: StackFile, count: int, rounds: int) -> None:
    host = next(host for host in stack.hosts if host.engine == Engine.POSTGRES)
    print("Bursts without a pool; all parts share the processors")
    await _bursts(stack, host, count, rounds)
    if len(os.sched_getaffinity(0)) > 1:
        part = f"{host.engine}-{host.region}"
        keep_apart(stack.processes, part)
        print(f"The same, {part} with half of the processors to itself, and all else on the others")
        await _bursts(stack, host, count, rounds)


async def _bursts(stack: StackFile, host: StackHost, count: int, rounds: int) -> None:
    ratios = []
    print("\n| a burst | until the last is there | processor time of each |\n|---|---|---|")
    for _ in range(rounds):
        ours, raw = await service_burst(stack, count), await raw_burst(stack, host, count)
        print(f"| {count} creates at once | {ours.seconds:.2f} s | {_each(ours, count)} |")
        print(f"| {count} bare databases, {raw.concurrency} at a time | {raw.seconds:.2f} s | {_each(raw, count)} |")
        ratios.append(ours.seconds / raw.seconds)
    print(f"\nratio {', '.join(f'{ratio:.2f}' for ratio in ratios)}; at most 1.5 is wanted\n", flush=True)


def _each(burst: Burst, count: int) -> str:
    total = 1000 * sum(burst.processor.values()) / count
    parts = ", ".join(f"{part} {1000 * seconds / count:.0f}" for part, seconds in burst.processor.items())
    return f"{total:.0f} ms: {parts}"


if __name__ == "__main__":
    main()
