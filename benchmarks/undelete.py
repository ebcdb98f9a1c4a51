"""`python -m benchmarks.undelete`: undeleting a database, compared with the engine's own statements that open one."""

import argparse
import asyncio
import os
import secrets
import time
import uuid
from typing import Any

import httpx

from app.contracts.base import Engine
from app.local.stack_file import StackFile, StackHost
from benchmarks.cold_create import quantile
from benchmarks.raw import Raw, raw_on
from benchmarks.stack import running_stack

_ROUNDS = 60
_WARM_UP = 3
"""Rounds that don't count: they open connections and load code."""
_CLOSE = {
    Engine.POSTGRES: ("ALTER ROLE {0} NOLOGIN", "ALTER DATABASE {0} ALLOW_CONNECTIONS false"),
    Engine.MYSQL: ("ALTER USER {0} ACCOUNT LOCK", "REVOKE ALL ON {0}.* FROM {0}"),
}
_OPEN = {
    Engine.POSTGRES: ("ALTER DATABASE {0} ALLOW_CONNECTIONS true", "ALTER ROLE {0} LOGIN"),
    Engine.MYSQL: ("GRANT ALL ON {0}.* TO {0}", "ALTER USER {0} ACCOUNT UNLOCK"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.undelete", description=__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="for each engine (default: %(default)s)")
    rounds = parser.parse_args().rounds
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} CPUs\n")
    with running_stack() as stack:
        asyncio.run(_run(stack, rounds))
    print(f"\nload average {os.getloadavg()[0]:.1f}")


async def _run(stack: StackFile, rounds: int) -> None:
    print("| engine | undelete p50 | p95 | delete p50 | raw p50 | p95 | ratio of p50 |\n|---|---|---|---|---|---|---|")
    for host in stack.hosts:
        undeletes, deletes, raw = await _measure(stack, host, rounds)
        times = [_ms(undeletes, 0.5), _ms(undeletes, 0.95), _ms(deletes, 0.5), _ms(raw, 0.5), _ms(raw, 0.95)]
        ratio = quantile(undeletes, 0.5) / quantile(raw, 0.5)
        print(f"| {host.engine} | {' | '.join(times)} | {ratio:.1f} |", flush=True)


async def _measure(stack: StackFile, host: StackHost, rounds: int) -> tuple[list[float], list[float], list[float]]:
    """Seconds of undeletions, of the deletions before them, and of the statements, taken in turn."""
    undeletes, deletes, raws = [], [], []
    headers = {"Authorization": f"Bearer {stack.api_key}"}
    async with (
        httpx.AsyncClient(base_url=f"{stack.api_url}/api/v1", headers=headers, timeout=60, trust_env=False) as http,
        raw_on(host) as raw,
    ):
        made = await _change(http, "POST", "/databases?wait=true", {"name": "benchmark", "db_type": host.engine})
        path = f"/databases/{made['data']['uuid']}"
        name = f"raw{secrets.token_hex(8)}"
        await _all(raw, raw.statements(name, secrets.token_hex(16)))
        for number in range(_WARM_UP + rounds):
            started = time.perf_counter()
            await _change(http, "DELETE", path)
            deleted = time.perf_counter()
            answer = await _change(http, "POST", f"{path}/undeletions")
            undeleted = time.perf_counter()
            if answer["data"]["status"] != "active":
                raise RuntimeError(f"it is {answer['data']['status']}")
            await _all(raw, [statement.format(name) for statement in _CLOSE[Engine(host.engine)]])
            opening = time.perf_counter()
            await _all(raw, [statement.format(name) for statement in _OPEN[Engine(host.engine)]])
            opened = time.perf_counter()
            if number >= _WARM_UP:
                deletes.append(deleted - started)
                undeletes.append(undeleted - deleted)
                raws.append(opened - opening)
    return undeletes, deletes, raws


async def _all(raw: Raw, statements: list[str]) -> None:
    for statement in statements:
        await raw.run(statement)


async def _change(http: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
    answer = await http.request(method, path, json=body, headers={"Idempotency-Key": str(uuid.uuid4())})
    if answer.status_code not in (200, 201):
        raise RuntimeError(f"{method} {path} was answered with {answer.status_code}: {answer.text}")
    return answer.json()


def _ms(times: list[float], at: float) -> str:
    return f"{1000 * quantile(times, at):.1f} ms"


if __name__ == "__main__":
    main()
