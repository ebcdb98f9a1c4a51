"""`python -m benchmarks.questions`: what a question costs beside the model's own time, against the plain driver."""

import argparse
import asyncio
import os
import platform
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import aiomysql
import asyncpg
import httpx

from app.contracts.base import Engine
from app.local.ports import LOOPBACK, free_port
from app.local.stack_file import StackFile
from benchmarks.stack import running_stack

_PAIRS = 100
_WARM_UP = 10
_TARGET = 2.0
_SQL = "SELECT id, name FROM customers ORDER BY id LIMIT 10"
_TABLES = (
    "CREATE TABLE customers (id BIGINT PRIMARY KEY, name VARCHAR(100) NOT NULL, country CHAR(2))",
    "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer_id BIGINT REFERENCES customers (id), total DECIMAL(12,2))",
    "INSERT INTO customers VALUES (1, 'Zed', 'NO'), (2, 'Yara', 'BR')",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions", description=__doc__)
    parser.add_argument("--pairs", type=int, default=_PAIRS, help="questions of each engine (default: %(default)s)")
    pairs = parser.parse_args().pairs
    with _instant_model(), running_stack() as stack:
        asyncio.run(_run(stack, pairs))


@contextmanager
def _instant_model() -> Iterator[None]:
    """Its address is in this process's environment, which the stack takes over."""
    port = free_port()
    os.environ |= {
        "HEADWATER_NL_MODEL": "instant",
        "OPENAI_API_KEY": "any",
        "OPENAI_BASE_URL": f"http://{LOOPBACK}:{port}/v1",
    }
    model = subprocess.Popen([sys.executable, "-m", "benchmarks.instant_model", str(port), _SQL])
    try:
        yield
    finally:
        model.terminate()
        model.wait(10)


async def _run(stack: StackFile, pairs: int) -> None:
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    print(f"a question that becomes a simple read, against connect + query; {pairs} pairs, interleaved\n")
    print("| engine | question p50 | connect + query p50 | ratio | target |")
    print("|--------|--------------|---------------------|-------|--------|")
    headers = {"Authorization": f"Bearer {stack.api_key}"}
    async with httpx.AsyncClient(
        base_url=f"{stack.api_url}/api/v1", headers=headers, timeout=60, trust_env=False
    ) as http:
        for engine in dict.fromkeys(host.engine for host in stack.hosts):
            database = await _database(http, engine)
            questions, plain = [], []
            for number in range(_WARM_UP + pairs):
                asked, driven = await _ask(http, database["uuid"]), await _drive(engine, database)
                if number >= _WARM_UP:
                    questions.append(asked)
                    plain.append(driven)
            ours, theirs = statistics.median(questions), statistics.median(plain)
            print(f"| {engine} | {1000 * ours:.1f} ms | {1000 * theirs:.1f} ms | {ours / theirs:.2f} | {_TARGET} |")


async def _database(http: httpx.AsyncClient, engine: str) -> dict[str, Any]:
    answer = await http.post(
        "/databases",
        params={"wait": "true", "timeout": "60"},
        json={"name": "asked", "db_type": engine},
        headers={"Idempotency-Key": str(uuid.uuid4())},
    )
    if answer.status_code != 201:
        raise RuntimeError(answer.text)
    database: dict[str, Any] = answer.json()["data"]
    for statement in _TABLES:
        await _drive(engine, database, statement)
    return database


async def _ask(http: httpx.AsyncClient, database: str) -> float:
    """Seconds. The model has its answer at once."""
    started = time.perf_counter()
    answer = await http.post("/query_executions", json={"database_uuid": database, "query": "Who are our customers?"})
    took = time.perf_counter() - started
    if answer.status_code != 200 or len(answer.json()["result"]["rows"]) != 2:
        raise RuntimeError(answer.text)
    return took


async def _drive(engine: str, database: dict[str, Any], sql: str = _SQL) -> float:
    """Seconds to connect as the tenant and to run one statement."""
    started = time.perf_counter()
    if engine == Engine.POSTGRES:
        connection = await asyncpg.connect(database["connection_string"])
        await connection.fetch(sql)
        took = time.perf_counter() - started
        await connection.close()
        return took
    plain = await aiomysql.connect(
        host=database["host"],
        port=database["port"],
        user=database["db_username"],
        password=database["db_password"],
        db=database["db_name"],
        autocommit=True,
    )
    async with plain.cursor() as cursor:
        await cursor.execute(sql)
        await cursor.fetchall()
    took = time.perf_counter() - started
    plain.close()
    return took


if __name__ == "__main__":
    main()
