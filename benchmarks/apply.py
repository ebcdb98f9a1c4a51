"""`python -m benchmarks.apply`: applying a blueprint through the API, compared with the same statements in a loop
over the driver, on the same server. Prints the figures of docs/benchmarks.md."""

import argparse
import asyncio
import time
import uuid
from typing import Any
from urllib.parse import urlsplit

import aiomysql
import asyncpg
import httpx

from app.contracts.base import Engine
from app.local.stack_file import StackFile
from benchmarks.cold_create import Pairs, quantile
from benchmarks.stack import running_stack

_STATEMENTS = 500
_ROUNDS = 9
_TARGET = 1.5
"""For PostgreSQL: the maximum ratio of an application to the loop."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.apply", description=__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="of each engine (default: %(default)s)")
    rounds = parser.parse_args().rounds
    with running_stack() as stack:
        asyncio.run(_run(stack, rounds))


async def _run(stack: StackFile, rounds: int) -> None:
    print(f"{_STATEMENTS} statements, {rounds} rounds, interleaved\n")
    print("| engine | API p50 | loop p50 | ratio of p50 | lowest and highest ratio of a round |")
    print("|---|---|---|---|---|")
    verdict = ""
    for host in stack.hosts:
        pairs = await _measure(stack, Engine(host.engine), rounds)
        times = [f"{1000 * quantile(side, 0.5):.0f} ms" for side in (pairs.api, pairs.raw)]
        lowest, highest = min(pairs.pair_ratios), max(pairs.pair_ratios)
        print(f"| {pairs.engine} | {' | '.join(times)} | {pairs.ratio:.2f} | {lowest:.2f}, {highest:.2f} |")
        if pairs.engine == Engine.POSTGRES:
            verdict = f"{pairs.engine}: {pairs.ratio:.2f}, the target is at most {_TARGET}"
    print(f"\n{verdict}")


def _script() -> list[str]:
    """Tables, indexes and rows, as in a typical schema."""
    statements: list[str] = []
    for number in range(_STATEMENTS // 5):
        name = f"t{number}"
        statements += [
            f"CREATE TABLE {name} (id integer PRIMARY KEY, email varchar(200) NOT NULL, made timestamp NULL)",
            f"CREATE INDEX {name}_by_email ON {name} (email)",
            f"ALTER TABLE {name} ADD note varchar(100)",
            f"INSERT INTO {name} (id, email) VALUES (1, 'a@example.com'), (2, 'b@example.com')",
            f"UPDATE {name} SET note = 'first' WHERE id = 1",
        ]
    return statements


async def _measure(stack: StackFile, engine: Engine, rounds: int) -> Pairs:
    """Each side in its own database, one after the other."""
    result = Pairs(engine, [], [])
    headers = {"Authorization": f"Bearer {stack.api_key}"}
    async with httpx.AsyncClient(
        base_url=f"{stack.api_url}/api/v1", headers=headers, timeout=130, trust_env=False
    ) as http:
        sql = ";\n".join(_script())
        blueprint = (await _post(http, "/blueprints", {"name": "benchmark", "sql_content": sql}))["uuid"]
        for number in range(1 + rounds):
            databases = [
                await _post(http, "/databases?wait=true", {"name": "benchmark", "db_type": engine}) for _ in range(2)
            ]
            api, raw = await _apply(http, databases[0]["uuid"], blueprint), await _loop(databases[1], engine)
            if number:
                result.api.append(api)
                result.raw.append(raw)
    return result


async def _apply(http: httpx.AsyncClient, database: str, blueprint: str) -> float:
    body = {"blueprint_uuid": blueprint, "timeout": 120}
    started = time.perf_counter()
    application = await _post(http, f"/databases/{database}/blueprint_applications", body)
    took = time.perf_counter() - started
    if application["status"] != "completed":
        raise RuntimeError(f"the application ended as {application['status']}: {application['error_message']}")
    return took


async def _loop(database: dict[str, Any], engine: Engine) -> float:
    started = time.perf_counter()
    if engine is Engine.POSTGRES:
        connection = await asyncpg.connect(database["connection_string"])
        async with connection.transaction():
            for statement in _script():
                await connection.execute(statement)
        await connection.close()
    else:
        parts = urlsplit(database["connection_string"])
        login = {"host": parts.hostname, "port": parts.port, "user": parts.username, "password": parts.password}
        connection = await aiomysql.connect(**login, db=parts.path.lstrip("/"), autocommit=True)
        async with connection.cursor() as cursor:
            for statement in _script():
                await cursor.execute(statement)
        connection.close()
    return time.perf_counter() - started


async def _post(http: httpx.AsyncClient, path: str, body: Any) -> Any:
    answer = await http.post(path, json=body, headers={"Idempotency-Key": str(uuid.uuid4())})
    if answer.status_code not in (200, 201):
        raise RuntimeError(f"{path} was answered with {answer.status_code}: {answer.text}")
    return answer.json()["data"]


if __name__ == "__main__":
    main()
