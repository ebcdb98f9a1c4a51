"""`python -m benchmarks.filters`: a page of filtered databases against a plain page, of a million databases."""

import argparse
import asyncio
import os
import platform
import statistics
import time
from typing import Any

import asyncpg
import httpx

from app.store.session import fetch
from benchmarks.api import add_host
from benchmarks.api_servers import Account, account, running_servers

_PAGES = 100
_MILLION, _FEW = 900_000, 5_000
_TARGET = 1.5

Query = list[tuple[str, str | int | float | bool | None]]

_FILTERS: dict[str, Query] = {
    "status, 98 %": [("status", "active")],
    "status, 0.02 %, the oldest": [("status", "paused")],
    "two statuses": [("status", "paused"), ("status", "provisioning")],
    "engine, 20 %, the oldest": [("db_type", "mysql")],
    "region, 0.1 %": [("region", "ap-south-1")],
    "plan, 1 %": [("plan", "pro")],
    "name, of one": [("name", "db-4321-of")],
    "name, of 0.1 %": [("name", "db-43")],
    "name, of all": [("name", "db-")],
    "label, 30 %": [("label", "env:production")],
    "label, 1 %": [("label", "owner:team-42")],
    "label, 20 of all, the oldest": [("label", "rare:yes")],
    "two labels": [("label", "env:production"), ("label", "owner:team-42")],
    "label and status": [("label", "owner:team-42"), ("status", "active")],
    "region, plan and engine": [("region", "eu-west-1"), ("plan", "grow"), ("db_type", "postgres")],
    "all six": [
        *(("name", "db-"), ("status", "active"), ("db_type", "postgres")),
        *(("region", "us-east-1"), ("plan", "free"), ("label", "env:staging")),
    ],
}
_REFUSED: dict[str, Query] = {
    "engine and region that exclude each other": [("db_type", "mysql"), ("region", "ca-central-1")],
    "the same with a name of all": [("db_type", "mysql"), ("region", "ca-central-1"), ("name", "db-")],
    "the same with everything": [
        *(("db_type", "mysql"), ("region", "ca-central-1"), ("name", "db-"), ("plan", "free"), ("plan", "grow")),
        *(("status", "active"), ("status", "paused"), ("label", "env:staging")),
    ],
}
"""What takes the most that one request may ask of our database."""

# The oldest fifth are MySQL, none of them in ca-central-1.
_ROWS = """
INSERT INTO databases (uuid, team_id, name, engine, region, plan, status, host_id, engine_name, connections, labels)
SELECT gen_random_uuid(), $1, 'db-' || n || '-of', CASE WHEN n <= $3 / 5 THEN 'mysql' ELSE 'postgres' END,
       CASE WHEN n % 1000 = 0 THEN 'ap-south-1' WHEN n > $3 / 5 AND n % 10 = 1 THEN 'ca-central-1'
            WHEN n % 10 < 4 THEN 'eu-west-1' ELSE 'us-east-1' END,
       CASE WHEN n % 100 = 7 THEN 'pro' WHEN n % 10 < 2 THEN 'grow' WHEN n % 10 < 5 THEN 'launch' ELSE 'free' END,
       CASE WHEN n <= $3 / 5000 THEN 'paused' WHEN n % 50 = 0 THEN 'provisioning' ELSE 'active' END,
       $2, 't' || n, 10,
       ARRAY['env:' || CASE WHEN n % 10 < 3 THEN 'production' ELSE 'staging' END, 'owner:team-' || n % 100]
       || CASE WHEN n <= 20 THEN ARRAY['rare:yes'] ELSE '{}' END
FROM generate_series(1, $3::int) AS n
"""
_LABELS = """
INSERT INTO database_labels (database_id, team_id, position, label)
SELECT d.id, d.team_id, d.position, label FROM databases d, unnest(d.labels) AS label
"""


async def _run(pages: int, rows: int) -> None:
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    async with running_servers() as servers:
        callers = {f"{rows:,}": await account("many"), f"{_FEW:,}": await account("few")}
        others = [await account(f"other-{number}") for number in range(10)]
        host = await add_host()
        sizes = {caller.team_id: count for caller, count in zip(callers.values(), (rows, _FEW), strict=True)}
        await fill(servers.dsn, host, sizes | {other.team_id: 9_500 for other in others})
        await fetch("UPDATE engine_hosts SET region = 'ca-central-1'")  # an empty page asks whether there is one
        async with httpx.AsyncClient(base_url=servers.api, trust_env=False, timeout=60) as http:
            for size, caller in callers.items():
                await _compare(http, size, caller, pages)
            await _refused(http, next(iter(callers.values())))


async def fill(dsn: str, host: int, sizes: dict[int, int]) -> None:
    """So many databases for each team. Row by row, triggers and indexes would take many minutes."""
    connection = await asyncpg.connect(dsn)  # on which nothing is timed out
    indexes = await connection.fetch(
        "SELECT indexname AS name, indexdef AS definition FROM pg_indexes"
        " WHERE tablename IN ('databases', 'database_labels') AND indexname ~ '_(by|in|expiring|on|deleted)'"
    )
    await connection.execute("SET session_replication_role = replica")
    for index in indexes:
        await connection.execute(f"DROP INDEX {index['name']}")
    for team, count in sizes.items():
        await connection.execute(_ROWS, team, host, count)
    await connection.execute(_LABELS)
    for index in indexes:
        await connection.execute(index["definition"])
    await connection.execute("VACUUM ANALYZE databases, database_labels")
    await connection.close()


async def _compare(http: httpx.AsyncClient, size: str, caller: Account, pages: int) -> None:
    queries: dict[str, Query] = {"plain": [], **_FILTERS}
    times: dict[str, list[float]] = {name: [] for name in queries}
    found: dict[str, int] = {}
    for number in range(pages + 10):
        for name, query in queries.items():
            took, answer = await _read(http, caller, query)
            found[name] = len(answer["data"])
            if number >= 10:
                times[name].append(took)
    plain = statistics.median(times["plain"])
    print(f"A page of 25 of {size} databases of one team, {pages} of each in turn; target {_TARGET}\n")
    print("| filters | found | p50 | ratio |\n|---------|-------|-----|-------|")
    for name, measured in times.items():
        p50 = statistics.median(measured)
        print(f"| {name} | {found[name]} | {1000 * p50:.2f} ms | {p50 / plain:.2f} |")
    print()


async def _refused(http: httpx.AsyncClient, caller: Account) -> None:
    print("What is answered after looking at the most that may be looked at\n")
    print("| filters | answer | p50 |\n|---------|--------|-----|")
    for name, query in _REFUSED.items():
        times = []
        for _ in range(5):
            took, answer = await _read(http, caller, query, refused=True)
            times.append(took)
        what = answer["error"]["code"] if "error" in answer else f"{len(answer['data'])} found"
        print(f"| {name} | {what} | {1000 * statistics.median(times):.0f} ms |")


async def _read(
    http: httpx.AsyncClient, caller: Account, query: Query, *, refused: bool = False
) -> tuple[float, dict[str, Any]]:
    started = time.perf_counter()
    answer = await http.get(
        "/api/v1/databases", params=httpx.QueryParams(query), headers={"Authorization": f"Bearer {caller.api_key}"}
    )
    took = time.perf_counter() - started
    if answer.status_code not in ((200, 422) if refused else (200,)):
        raise RuntimeError(f"{query}: {answer.status_code}: {answer.text[:500]}")
    body: dict[str, Any] = answer.json()
    return took, body


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.filters", description=__doc__)
    parser.add_argument("--pages", type=int, default=_PAGES, help="of each kind (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=_MILLION, help="of the large team (default: %(default)s)")
    given = parser.parse_args()
    asyncio.run(_run(given.pages, given.rows))


if __name__ == "__main__":
    main()
