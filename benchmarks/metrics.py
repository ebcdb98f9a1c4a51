"""`python -m benchmarks.metrics`: what metrics cost our own database and a worker: one sample of many databases, their
sums, and reading a day of one of them, compared with the query that reads its rows. Prints the figures of
docs/benchmarks.md. Starts a PostgreSQL of its own."""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from app.engines.base import Counters
from app.store.migrate import migrate
from app.store.session import execute, fetch
from app.usage.metrics import rollups, sampling
from app.usage.metrics.sampling import Sampled
from benchmarks.processor_time import processor_seconds
from tests import servers
from tests.support.client import Caller
from tests.support.in_process import lone_api
from tests.support.store import new_database, store

_MINUTE = timedelta(minutes=1)
_DATABASES = """
INSERT INTO databases (uuid, team_id, name, engine, region, plan, status, host_id, engine_name, connections)
SELECT gen_random_uuid(), $1, 'db-' || n, 'postgres', 'us-east-1', 'starter', 'active', $2, 't' || n, 5
FROM generate_series(1, $3) n
"""
# As they come: minute after minute, all databases in each.
_DAY = """
INSERT INTO metric_samples (database_id, at, storage_bytes, connections, transactions, rows_read, rows_written,
                            cache_hits, cache_reads)
SELECT d.id, $1::timestamptz + n * interval '1 minute', 10000000 + n, n % 9, n, 20 * n, n / 2, 100 * n, n
FROM generate_series(0, 1439) n, databases d ORDER BY n, d.id
"""
_ONE_QUERY = """
SELECT at, storage_bytes, connections, transactions, rows_read, rows_written, cache_hits, cache_reads
FROM {} WHERE database_id = $1 AND at >= $2 ORDER BY at
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metrics", description=__doc__)
    parser.add_argument("--databases", type=int, default=5000)
    parser.add_argument("--with-a-day", type=int, default=500, help="databases that have samples of a day")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure(Path(folder), arguments.databases, arguments.with_a_day, arguments.rounds))


async def _measure(folder: Path, databases: int, with_a_day: int, rounds: int) -> None:
    os.chmod(folder, 0o711)  # the server may have a user of its own
    async with servers.postgres(folder, log_statement="none") as server:
        dsn = await new_database(server.admin_dsn)
        async with store(dsn):
            await migrate()
        async with lone_api(dsn) as api:
            caller, host = await api.caller(), await api.add_host()
            await fetch(_DATABASES, caller.team_id, host, with_a_day)
            await _read(caller, rounds * 20)
            for table in ("samples", "readings", "rollups"):
                await fetch(f"DELETE FROM metric_{table}")
            await fetch(_DATABASES.replace("'t' ||", "'u' ||"), caller.team_id, host, databases - with_a_day)
            await _sample(server.pid, host, rounds)


async def _sample(server: int, host: int, rounds: int) -> None:
    found = await fetch("SELECT id, engine_name FROM databases ORDER BY id")
    processes = {"worker": [os.getpid()], "postgres": [server]}
    start = datetime.now(UTC) - rounds * _MINUTE
    sampled = [
        Sampled(database_id=row["id"], name=row["engine_name"], running=True, connections=1, storage_bytes=9_000_000)
        for row in found
    ]
    taken: list[tuple[float, float]] = []
    for minute in range(rounds):
        at, count = start + minute * _MINUTE, 1000 * minute
        counters = {
            one.name: Counters(
                began="a", transactions=count, rows_read=count, rows_written=count, cache_hits=count, cache_reads=count
            )
            for one in sampled
        }
        await sampling.prepare(at)
        before = processor_seconds(processes)
        assert await sampling.keep(host, sampled, counters, at, longest_gap=190) == len(sampled)
        after = processor_seconds(processes)
        taken.append((after["worker"] - before["worker"], after["postgres"] - before["postgres"]))
    worker, postgres = (statistics.median(part) for part in zip(*taken[1:], strict=True))
    print(f"one sample of {len(sampled)} databases: {worker + postgres:.2f} s of processor time,")
    print(f"  of it {worker:.2f} s in the worker, {postgres:.2f} s in our own PostgreSQL (median of {rounds - 1})")
    before = processor_seconds(processes)
    await rollups.roll_up(datetime.now(UTC) + timedelta(hours=2))
    after = processor_seconds(processes)
    print(f"summing up those minutes: {sum(after.values()) - sum(before.values()):.2f} s")


async def _read(caller: Caller, rounds: int) -> None:
    now = datetime.now(UTC)
    day = now - timedelta(days=1)
    for at in (day, now):
        await rollups.prepare(at)
    await fetch(_DAY, day)
    await execute("UPDATE metric_rollups SET rolled_until = date_bin('1 hour', $1, 'epoch')", day)
    for _ in range(6):
        await rollups.roll_up(now)
    await fetch("VACUUM ANALYZE metric_samples, metric_five_minutes")
    found = await fetch("SELECT id, uuid FROM databases ORDER BY random() LIMIT $1", rounds)
    await execute(
        "INSERT INTO metric_readings (database_id, first_at, read_at, place, began)"
        " SELECT id, $1, $2, '', '' FROM databases",
        day,
        now,
    )

    async def query(table: str, number: int) -> None:
        await fetch(_ONE_QUERY.format(table), found[number]["id"], day)

    async def ask(step: int, number: int) -> None:
        uuid: UUID = found[number]["uuid"]
        answer = await caller.get(f"/databases/{uuid}/metrics", params={"step": step, "from": day.isoformat()})
        assert answer.status_code == 200

    async def me(_: int) -> None:
        assert (await caller.get("/me")).status_code == 200

    print("| a day of one database | p50 of the request | less that of GET /me | of the query for its rows | ratio |")
    print("|---|---|---|---|---|")
    for step, table, rows in ((300, "metric_five_minutes", 288), (60, "metric_samples", 1440)):
        ways: dict[str, Callable[[int], Awaitable[None]]] = {
            "request": lambda number, step=step: ask(step, number),  # type: ignore[misc]
            "bare": me,
            "query": lambda number, table=table: query(table, number),  # type: ignore[misc]
        }
        took = await _alternating(ways, rounds)
        rest = took["request"] - took["bare"]
        print(
            f"| {rows} points | {1000 * took['request']:.2f} ms | {1000 * rest:.2f} ms | {1000 * took['query']:.2f} ms"
            f" | {rest / took['query']:.2f}, with all {took['request'] / took['query']:.2f} |"
        )


async def _alternating(ways: dict[str, Callable[[int], Awaitable[None]]], rounds: int) -> dict[str, float]:
    """The median seconds of each, taken in turn."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        for name, way in ways.items():
            began = time.perf_counter()
            await way(number)
            times[name].append(time.perf_counter() - began)
    return {name: statistics.median(taken) for name, taken in times.items()}


if __name__ == "__main__":
    main()
