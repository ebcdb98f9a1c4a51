"""`python -m benchmarks.api`: what authentication costs, and what a page of a long list does."""

import argparse
import asyncio
import os
import platform
import statistics
import sys
import time

import asyncpg
import httpx

from app.store.session import fetch
from benchmarks.api_servers import Account, Servers, account, running_servers

_ROUNDS = 9
_SECONDS = 3.0
_CONNECTIONS = 16
_PAGES = 200
_SHORT, _LONG = 100, 1_000_000
_ME_TARGET, _PAGE_TARGET = "0.88, with 16 keys 0.85", 1.2


async def _run(rounds: int, seconds: float, rows: int) -> None:
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    async with running_servers() as servers:
        accounts = [await account(f"user-{number}") for number in range(_CONNECTIONS)]
        await _throughput(servers, accounts, rounds, seconds)
        await _pages(servers, rows)


async def _throughput(servers: Servers, accounts: list[Account], rounds: int, seconds: float) -> None:
    """Loads `GET /me` and the bare handler alternately, so that both meet the same conditions."""
    keys = [each.api_key for each in accounts]
    sides: dict[str, tuple[str, list[str]]] = {
        "bare": (f"{servers.bare}/bare", []),
        "one key": (f"{servers.api}/api/v1/me", keys[:1]),
        f"{len(keys)} keys": (f"{servers.api}/api/v1/me", keys),
    }
    rates: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(rounds + 1):
        for side, (url, given) in sides.items():
            measured = await _load(url, seconds, given)
            if number > 0:  # the first round warms up
                rates[side].append(measured)
    print(f"GET /me, {_CONNECTIONS} connections, {rounds} rounds of {seconds:g} s, interleaved; target {_ME_TARGET}\n")
    print("| handler | requests/s, median | ratio to bare, median of rounds | lowest | highest |")
    print("|---------|--------------------|---------------------------------|--------|---------|")
    for side, of_side in rates.items():
        ratios = [mine / bare for mine, bare in zip(of_side, rates["bare"], strict=True)]
        print(
            f"| {side} | {statistics.median(of_side):.0f} | {statistics.median(ratios):.2f}"
            f" | {min(ratios):.2f} | {max(ratios):.2f} |"
        )


async def _load(url: str, seconds: float, keys: list[str]) -> float:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.load", url, str(seconds), str(_CONNECTIONS), *keys),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    return float(output)


async def _pages(servers: Servers, rows: int) -> None:
    """Compares a page for a team with many databases and for one with few, alternating request by request."""
    short, long, both = await account("short"), await account("long"), await account("both")
    await fetch(
        "INSERT INTO memberships (user_id, team_id) SELECT user_id, $2 FROM memberships WHERE team_id = $1",
        both.team_id,
        long.team_id,
    )
    host = await add_host()
    await _add_databases(servers.dsn, short, host, _SHORT)
    await _add_databases(servers.dsn, long, host, rows)
    pages = {
        "first of few": (short, None),
        "first of many": (long, None),
        "middle of many": (long, await _cursor(long, rows // 2)),
        "last of many": (long, await _cursor(long, 25)),
        "first of many and none": (both, None),
        "middle of many and none": (both, await _cursor(long, rows // 2)),
    }
    times: dict[str, list[float]] = {page: [] for page in pages}
    async with httpx.AsyncClient(base_url=servers.api, trust_env=False) as http:
        for number in range(_PAGES + 20):
            for page, (caller, cursor) in pages.items():
                took = await _read(http, caller, cursor)
                if number >= 20:
                    times[page].append(took)
    few = statistics.median(times["first of few"])
    print(f"\nA page of 25 of {_SHORT} and of {rows:,} databases, {_PAGES} of each in turn; target {_PAGE_TARGET}\n")
    print("| page | p50 | ratio |\n|------|-----|-------|")
    for page, measured in times.items():
        print(f"| {page} | {1000 * statistics.median(measured):.2f} ms | {statistics.median(measured) / few:.2f} |")


async def _read(http: httpx.AsyncClient, caller: Account, cursor: str | None) -> float:
    """Returns seconds."""
    params = {"starting_after": cursor} if cursor else {}
    started = time.perf_counter()
    answer = await http.get("/api/v1/databases", params=params, headers={"Authorization": f"Bearer {caller.api_key}"})
    took = time.perf_counter() - started
    if answer.status_code != 200 or len(answer.json()["data"]) < 24:
        raise RuntimeError(f"{answer.status_code}: {answer.text[:500]}")
    return took


async def add_host() -> int:
    rows = await fetch(
        "INSERT INTO engine_hosts (engine, flavour, version, region, host, port, admin_sealed, capacity,"
        " connection_capacity) VALUES ('postgres', 'postgres', '18', 'us-east-1', 'db.example.com', 5432, '', 1, 1)"
        " RETURNING id"
    )
    return int(rows[0]["id"])


async def _add_databases(dsn: str, owner: Account, host: int, count: int) -> None:
    connection = await asyncpg.connect(dsn)  # on which nothing is timed out
    await connection.execute(
        "INSERT INTO databases (uuid, team_id, name, engine, region, plan, status, host_id, engine_name, connections)"
        " SELECT gen_random_uuid(), $1, 'db-' || n, 'postgres', 'us-east-1', 'free', 'active', $2, 't' || n, 10"
        " FROM generate_series(1, $3::int) AS n",
        owner.team_id,
        host,
        count,
    )
    await connection.execute("VACUUM ANALYZE databases")
    await connection.close()


async def _cursor(owner: Account, older: int) -> str:
    """The uuid of the database that has this many older ones."""
    rows = await fetch(
        "SELECT uuid::text AS uuid FROM databases WHERE team_id = $1 ORDER BY id OFFSET $2 LIMIT 1",
        owner.team_id,
        older,
    )
    uuid: str = rows[0]["uuid"]
    return uuid


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.api", description=__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="of each handler (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="of each round (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=_LONG, help="of the long list (default: %(default)s)")
    given = parser.parse_args()
    asyncio.run(_run(given.rounds, given.seconds, given.rows))


if __name__ == "__main__":
    main()
