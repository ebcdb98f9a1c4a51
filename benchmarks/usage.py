"""`python -m benchmarks.usage`: what the ledger of usage costs 5,000 databases: counting with each measurement, closing
a period, and reading a month."""

import argparse
import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

import httpx

from app.engines.base import Usage
from app.quotas import usage
from app.store.partitions import ensure
from app.store.session import execute, fetch
from app.store.tables.metering import LEDGER
from app.usage import closing
from benchmarks.api_servers import Account, account, running_servers

_DATABASES = 5000
_ROUNDS = 7
_BATCH = 50
"""Databases that are measured together."""
_DAYS = 30
_PERIOD = 3600
_MONTH = datetime(2026, 9, 1, tzinfo=UTC)
_KEEP = timedelta(days=4000)

_FILL = """
WITH host AS (
    INSERT INTO engine_hosts (engine, flavour, version, region, host, port, admin_sealed, capacity, connection_capacity)
    VALUES ('postgres', 'postgres', '18', 'us-east-1', 'db.example.com', 5432, '', 100000, 100000) RETURNING id
), made AS (
    INSERT INTO databases (uuid, team_id, name, engine, region, plan, status, host_id, engine_name, connections)
    SELECT gen_random_uuid(), $1, 'db', 'postgres', 'us-east-1', 'pro', 'active', host.id, 'u_' || n, 10
    FROM host, generate_series(1, $2) n RETURNING id
)
INSERT INTO database_usage (database_id, measured_at, storage_bytes, connected, runtime_month)
SELECT id, now(), 0, false, now()::date FROM made
"""
_FILL_MONTH = """
INSERT INTO usage_periods
SELECT database_uuid, team_id, plan, region, hour, hour + interval '1 hour', hour, 3600, 3600 * 8000000::numeric, 0
FROM usage_meters, generate_series($1::timestamptz, $1::timestamptz + make_interval(hours => $2 - 1), '1 hour') hour
ORDER BY hour, id
"""
_BARE = """
SELECT database_uuid, sum(runtime_seconds), sum(storage_byte_seconds), sum(backup_byte_seconds) FROM usage_periods
WHERE team_id = $1 AND starts_at >= $2 AND starts_at < $3 GROUP BY 1
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.usage", description=__doc__)
    parser.add_argument("--databases", type=int, default=_DATABASES, help="(default: %(default)s)")
    parser.add_argument("--days", type=int, default=_DAYS, help="of the month that is read (default: %(default)s)")
    arguments = parser.parse_args()
    databases = arguments.databases
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} CPUs, {databases} databases\n")
    asyncio.run(_run(databases, arguments.days))


async def _run(databases: int, days: int) -> None:
    async with running_servers() as servers:
        owner = await account("usage")
        await execute(_FILL, owner.team_id, databases)
        ids = [row["id"] for row in await fetch("SELECT id FROM databases ORDER BY id")]
        await _measurements(ids)
        await _closing()
        await _reading(servers.api, owner, days)


async def _measurements(ids: list[int]) -> None:
    """With the triggers and without, in turn."""
    print("| sizes of all, recorded in batches | median | without the meters | ratio |\n|---|---|---|---|")
    at = datetime.now(UTC)
    for name, growth in (("all of them changed", 1), ("none changed", 0)):
        times: dict[str, list[float]] = {"ENABLE": [], "DISABLE": []}
        for number in range(2 * _ROUNDS):
            state = ("ENABLE", "DISABLE")[number % 2]
            await execute(f"ALTER TABLE database_usage {state} TRIGGER USER")
            at += timedelta(minutes=1)
            size = 10_000_000 + growth * number
            times[state].append(await _timed(lambda size=size, at=at: _record(ids, size, at)))  # type: ignore[misc]
        with_them, without = median(times["ENABLE"]), median(times["DISABLE"])
        print(f"| {name} | {1000 * with_them:.0f} ms | {1000 * without:.0f} ms | {with_them / without:.2f} |")
    await execute("ALTER TABLE database_usage ENABLE TRIGGER USER")


async def _record(ids: list[int], size: int, at: datetime) -> None:
    for first in range(0, len(ids), _BATCH):
        found = dict.fromkeys(ids[first : first + _BATCH], Usage(storage_bytes=size, connections=0))
        await usage.record_storage(found, at)


async def _closing() -> None:
    """Hour after hour, by a clock that is moved."""
    times, hour = [], datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    for _ in range(_ROUNDS):
        hour += timedelta(hours=1)
        await execute(
            "CREATE OR REPLACE FUNCTION usage_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS"
            f" $$ SELECT '{hour.isoformat()}'::timestamptz $$"
        )
        times.append(await _timed(lambda: closing.close(_PERIOD, _KEEP)))
    print(f"\nclosing an hour: median {1000 * median(times):.0f} ms, most {1000 * max(times):.0f} ms")


async def _reading(api: str, owner: Account, days: int) -> None:
    await ensure(LEDGER, _MONTH, _MONTH + timedelta(days=days))
    await execute("SET statement_timeout = 0")
    for day in range(days):
        await execute(_FILL_MONTH, _MONTH + timedelta(days=day), 24)
    await execute("VACUUM ANALYZE usage_periods, usage_days")
    end = _MONTH + timedelta(days=days)
    bare = [await _timed(lambda: fetch(_BARE, owner.team_id, _MONTH, end)) for _ in range(_ROUNDS)]
    [size] = await fetch(
        "SELECT pg_size_pretty(sum(pg_total_relation_size(relid))) AS size FROM pg_partition_tree('usage_periods')"
    )
    print(f"\na month of hours: {size['size']}; its sums by database, in SQL alone: {1000 * median(bare):.0f} ms\n")
    print("| `GET /usage` of a month | lines | median | of the SQL |\n|---|---|---|---|")
    headers = {"Authorization": f"Bearer {owner.api_key}"}
    async with httpx.AsyncClient(base_url=api, timeout=120, headers=headers) as http:
        for name, accept, params in (
            ("by database", "application/json", {"granularity": "total", "limit": "5000"}),
            ("by team and day", "application/json", {"granularity": "day", "group_by": "team"}),
            ("a page of hours of databases", "application/json", {"limit": "1000"}),
            ("by database, CSV", "text/csv", {"granularity": "total"}),
        ):
            query = {"from": _MONTH.isoformat(), "to": end.isoformat(), **params}
            times, lines = [], 0
            for _ in range(_ROUNDS):
                started = time.perf_counter()
                answer = await http.get("/api/v1/usage", params=query, headers={"Accept": accept})
                times.append(time.perf_counter() - started)
                answer.raise_for_status()
                lines = len(answer.text.splitlines()) - 1 if accept == "text/csv" else len(answer.json()["data"])
            print(f"| {name} | {lines} | {1000 * median(times):.0f} ms | {median(times) / median(bare):.2f} |")


async def _timed(work: Callable[[], Awaitable[Any]]) -> float:
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
