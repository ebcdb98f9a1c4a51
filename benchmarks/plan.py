"""`python -m benchmarks.plan`: the plan of docs/scaling.md for 100,000 databases and 10 million webhooks a day, on our
own database at that size.

A PostgreSQL of its own gets the rows of so many databases on forty hosts, and of the events and deliveries of a day.
Then what our own database is asked for all the time is asked there: by the functions that ask it in service, with the
processor time of the server and of this process, beside what the same costs where there is one of the hosts, and a
fortieth of all else. What that makes of a core is summed up. The engines, and requests to receivers, are no part of it.
"""

import argparse
import asyncio
import os
import platform
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

from app.contracts.base import Engine
from app.core.ids import new_uuid
from app.databases import hosted, records
from app.engines.base import Counters, Usage
from app.hosts.loads import place
from app.outbox.events import delete_old_events
from app.quotas import usage
from app.store.migrate import migrate
from app.store.session import execute, fetch, fetch_values, transaction
from app.upkeep.inventory.gauges import installation_gauges
from app.upkeep.reconcile.records import check_records
from app.usage.metrics import sampling
from app.usage.metrics.sampling import Sampled
from app.webhooks import waiting
from app.webhooks.dispatch import dispatch
from app.webhooks.records import delete_old_deliveries
from benchmarks.processor_time import processor_seconds
from tests import servers
from tests.support.in_process import lone_api
from tests.support.store import new_database, store

_DATABASES, _HOSTS, _TEAMS, _DELIVERIES = 100_000, 40, 1_000, 10_000_000
_ROUNDS = 5
_PATIENCE = timedelta(minutes=5)
_DAY = 86_400
_BATCH = 500
_FETCH, _DISPATCH = 40, 100
_ENOUGH_SECONDS, _MOST = 0.3, 2_000

_FILL_HOSTS = """
INSERT INTO engine_hosts (engine, flavour, version, region, host, port, admin_sealed, capacity, connection_capacity,
                          connection_overcommit)
SELECT 'mysql', 'mariadb', '10.11', 'us-east-1', 'db' || n || '.example.com', 3306, '', 1000000, 1000000, 10
FROM generate_series(1, $1::int) n
"""
_FILL_TEAMS = """
INSERT INTO teams (name, tier) SELECT 'team-' || n, 'pro' FROM generate_series(1, $1::int) n
"""
_FILL_DATABASES = """
INSERT INTO databases (uuid, team_id, name, engine, region, plan, status, host_id, engine_name, connections,
                       remote_since, provisioned_at, limits_applied, access_applied)
SELECT gen_random_uuid(), t.ids[1 + n % cardinality(t.ids)], 'db-' || n, 'mysql', 'us-east-1', 'launch', 'active',
       h.ids[1 + n % cardinality(h.ids)], 't' || n, 10, now(), now(), 0, 0
FROM generate_series(1, $1::int) n, (SELECT array_agg(id) AS ids FROM teams) t,
     (SELECT array_agg(id) AS ids FROM engine_hosts) h
"""
_FILL_USAGE = """
INSERT INTO database_usage (database_id, measured_at, storage_bytes, storage_measured_at, connected, runtime_month)
SELECT id, now(), 8000000, now(), false, now()::date FROM databases ON CONFLICT (database_id) DO NOTHING
"""
_FILL_ENDPOINTS = """
INSERT INTO webhook_endpoints (team_id, url, events) SELECT id, 'https://example.com/' || id, '{}' FROM teams
"""
# A day's, all delivered, and as old as a day makes them.
_FILL_EVENTS = """
INSERT INTO events (uuid, type, database_id, team_id, payload, created_at, dispatched_at)
SELECT gen_random_uuid(), 'database.quota_warning', NULL, t.ids[1 + n % cardinality(t.ids)],
       jsonb_build_object('event', 'database.quota_warning', 'data', jsonb_build_object('name', 'db-' || n,
                          'text', repeat('a', 400))),
       now() - interval '1 day' * (1 - n / $1::float8), now()
FROM generate_series(1, $1::int) n, (SELECT array_agg(id) AS ids FROM teams) t
"""
_FILL_DELIVERIES = """
INSERT INTO webhook_deliveries (webhook_id, endpoint_id, event_id, event_type, status, response_code, attempt_count,
                                spent, created_at, finished_at)
SELECT 'msg_' || e.uuid, w.id, e.id, e.type, 'delivered', 200, 1, 1, e.created_at, e.created_at
FROM events e JOIN webhook_endpoints w USING (team_id)
"""
_FILL_ATTEMPTS = """
INSERT INTO webhook_attempts (delivery_id, response_code) SELECT id, 200 FROM webhook_deliveries
"""
_NEW_EVENTS = """
INSERT INTO events (uuid, type, database_id, team_id, payload)
SELECT gen_random_uuid(), 'database.quota_warning', NULL, t.ids[1 + n % cardinality(t.ids)], '{}'
FROM generate_series(1, $1::int) n, (SELECT array_agg(id ORDER BY random()) AS ids FROM teams) t
"""
_DELIVERED = """
UPDATE webhook_deliveries SET status = 'delivered', response_code = 200, attempt_count = 1, spent = 1, waiting = false,
       next_attempt_at = NULL, finished_at = now() WHERE id = any($1::bigint[])
"""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What our own database is asked `a_day` times at the full size, each time in one `ask`."""

    name: str
    ask: Callable[[], Awaitable[Any]]
    a_day: Callable[["Size"], float]


class Size(msgspec.Struct, frozen=True, kw_only=True):
    databases: int
    hosts: int
    teams: int
    deliveries: int


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of processor time of one."""

    server: float
    process: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan", description=__doc__)
    parser.add_argument("--databases", type=int, default=_DATABASES, help="(default: %(default)s)")
    parser.add_argument("--deliveries", type=int, default=_DELIVERIES, help="of a day (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="of each (default: %(default)s)")
    given = parser.parse_args()
    full = Size(databases=given.databases, hosts=_HOSTS, teams=_TEAMS, deliveries=given.deliveries)
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}\n")
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        asyncio.run(_run(Path(folder), full, given.rounds))
    print(f"\nload {os.getloadavg()[0]:.1f} after")


async def _run(folder: Path, full: Size, rounds: int) -> None:
    os.chmod(folder, 0o711)  # the server may have a user of its own
    small = Size(
        databases=full.databases // full.hosts,
        hosts=1,
        teams=full.teams // full.hosts,
        deliveries=full.deliveries // full.hosts,
    )
    async with servers.postgres(folder, log_statement="none", max_wal_size="8GB") as server:
        costs = []
        for size in (small, full):
            dsn = await new_database(server.admin_dsn)
            async with store(dsn):
                await migrate()
            await _fill(dsn, size)
            async with lone_api(dsn):
                costs.append(await _ask_all(server.pid, size, rounds))
    _print(full, *costs)


async def _fill(dsn: str, size: Size) -> None:
    """As it would be after a day. Constraints between tables hold by the way it is filled."""
    connection = await asyncpg.connect(dsn)  # on which nothing is timed out
    await connection.execute("SET session_replication_role = replica")
    for sql, number in (
        (_FILL_HOSTS, size.hosts),
        (_FILL_TEAMS, size.teams),
        (_FILL_DATABASES, size.databases),
        (_FILL_USAGE, None),
        (_FILL_ENDPOINTS, None),
        (_FILL_EVENTS, size.deliveries),
        (_FILL_DELIVERIES, None),
        (_FILL_ATTEMPTS, None),
    ):
        await connection.execute(sql, *([] if number is None else [number]))
    await connection.execute("VACUUM ANALYZE")
    held = await connection.fetchval("SELECT pg_size_pretty(pg_database_size(current_database()))")
    print(f"{size.databases:,} databases and {size.deliveries:,} deliveries: {held}", flush=True)
    await connection.close()


def _questions(host: int, names: Sequence[tuple[int, str]], some: Any) -> list[Question]:
    """Of one host's databases, and of one of them."""
    minute = (datetime.now(UTC) + timedelta(minutes=number) for number in count())
    ids = [one for one, _ in names]

    async def sample() -> None:
        at = next(minute)
        await sampling.prepare(at)
        sampled = [
            Sampled(database_id=id_, name=name, running=True, connections=1, storage_bytes=9_000_000)
            for id_, name in names
        ]
        counters = {
            name: Counters(began="a", transactions=1, rows_read=1, rows_written=1, cache_hits=1, cache_reads=1)
            for _, name in names
        }
        await sampling.keep(host, sampled, counters, at, longest_gap=190)

    async def sizes() -> None:
        at = next(minute)
        for first in range(0, len(ids), 50):
            found = dict.fromkeys(ids[first : first + 50], Usage(storage_bytes=at.minute, connections=0))
            await usage.record_storage(found, at)

    async def placement() -> None:
        async with transaction():
            await place(Engine.MYSQL, "us-east-1", 10)

    async def deliveries() -> None:
        """From the outbox to what is delivered, without the request."""
        await execute(_NEW_EVENTS, _DISPATCH)
        await dispatch(_DISPATCH, first_wait=0)
        worker, left = new_uuid(), _DISPATCH
        while left > 0:
            for endpoint in await waiting.claim(worker, 200, probes=0):
                due = await waiting.list_due(endpoint.id, _FETCH)
                for one in due:
                    await execute(_DELIVERED, [one.id])
                await waiting.release(worker, endpoint.id)
                left -= len(due)

    async def sweep() -> None:
        for rule in (delete_old_deliveries, delete_old_events):
            async with transaction():
                await rule(_BATCH, timedelta(hours=20))

    per_host = {"a_day": lambda size: size.hosts * _DAY / 60}
    return [
        Question(name="the gauges of one scrape", ask=installation_gauges, a_day=lambda _: _DAY / 15),
        Question(name="who of a host is measured", ask=lambda: hosted.measurable_on(host), **per_host),
        Question(name="the sizes of a host's databases", ask=sizes, **per_host),
        Question(name="a sample of a host's databases", ask=sample, **per_host),
        Question(
            name="the rows of a host, to compare",
            ask=lambda: hosted.recorded_on(host, _PATIENCE),
            a_day=lambda size: size.hosts * _DAY / 300,
        ),
        Question(name="whether rows agree", ask=lambda: check_records(_PATIENCE), a_day=lambda _: _DAY / 300),
        Question(name="which host a database goes to", ask=placement, a_day=lambda _: 24_000),
        Question(name="a read of one", ask=lambda: records.find(some), a_day=lambda size: size.databases / 10 * _DAY),
        Question(
            name=f"{_DISPATCH} events, dispatched and delivered",
            ask=deliveries,
            a_day=lambda size: size.deliveries / _DISPATCH,
        ),
        Question(
            name=f"the sweep of {_BATCH} deliveries, and events", ask=sweep, a_day=lambda size: size.deliveries / _BATCH
        ),
    ]


async def _ask_all(server: int, size: Size, rounds: int) -> dict[str, tuple[Question, Cost]]:
    [host] = await fetch_values(int, "SELECT id FROM engine_hosts ORDER BY id LIMIT 1")
    rows = await fetch("SELECT id, engine_name, uuid FROM databases WHERE host_id = $1 ORDER BY id", host)
    names = [(row["id"], row["engine_name"]) for row in rows]
    return {one.name: (one, await _cost(server, one, rounds)) for one in _questions(host, names, rows[0]["uuid"])}


async def _cost(server: int, question: Question, rounds: int) -> Cost:
    """The median of some rounds, in each of which it is asked so often that reading the clocks is a small part."""
    processes = {"server": [server], "process": [os.getpid()]}
    await question.ask()
    taken: list[tuple[float, float]] = []
    for _ in range(rounds):
        asked, enough = 0, 1
        before = processor_seconds(processes)
        while True:
            while asked < enough:
                await question.ask()
                asked += 1
            after = processor_seconds(processes)
            spent = {name: after[name] - before[name] for name in processes}
            if spent["process"] >= _ENOUGH_SECONDS or asked >= _MOST:
                break
            enough = 2 * asked
        # The server is a child of this process, and counted with it.
        taken.append((spent["server"] / asked, max(0.0, spent["process"] - spent["server"]) / asked))
    server_seconds, process_seconds = (statistics.median(part) for part in zip(*taken, strict=True))
    return Cost(server=server_seconds, process=process_seconds)


def _print(full: Size, small: dict[str, tuple[Question, Cost]], large: dict[str, tuple[Question, Cost]]) -> None:
    print("\nMilliseconds of processor time of one: of our own PostgreSQL, and of the process that asks\n")
    print(f"| | with 1 host of {full.hosts} | all | a day | cores of PostgreSQL | of the process |")
    print("|---|---|---|---|---|---|")
    total = [0.0, 0.0]
    for name, (question, cost) in large.items():
        before, times = small[name][1], question.a_day(full)
        cores = [part * times / _DAY for part in (cost.server, cost.process)]
        total = [known + part for known, part in zip(total, cores, strict=True)]
        print(f"| {name} | {_ms(before)} | {_ms(cost)} | {times:,.0f} | {cores[0]:.2f} | {cores[1]:.2f} |", flush=True)
    print(f"| in all | | | | {total[0]:.2f} | {total[1]:.2f} |")


def _ms(cost: Cost) -> str:
    return f"{1000 * cost.server:.2f} + {1000 * cost.process:.2f}"


if __name__ == "__main__":
    main()
