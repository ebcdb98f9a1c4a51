"""`python -m benchmarks.questions`: the cost of a question beyond the model's own time, compared with the plain
driver and with a minimal handler."""

import argparse
import asyncio
import json
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
from urllib.parse import urlsplit

import httpx
import msgspec

from app.local.ports import LOOPBACK, free_port
from app.local.stack_file import StackFile
from benchmarks.driver import connect_and_run
from benchmarks.instant_model import taking, took
from benchmarks.lean_http import LeanConnection
from benchmarks.stack import running_stack

_PAIRS = 100
_WARM_UP = 10
_TARGET = 2.0
_MODEL_MS = (0, 200)
"""A model that answers immediately hides no work that is done at the same time, but none does; the second is a fast
one."""
_READY_SECONDS = 30
QUESTION = "Who are our customers?"
_SQL = "SELECT id, name FROM customers ORDER BY id LIMIT 10"
_TABLES = (
    "CREATE TABLE customers (id BIGINT PRIMARY KEY, name VARCHAR(100) NOT NULL, country CHAR(2))",
    "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer_id BIGINT REFERENCES customers (id), total DECIMAL(12,2))",
    "INSERT INTO customers VALUES (1, 'Zed', 'NO'), (2, 'Yara', 'BR')",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions", description=__doc__)
    parser.add_argument("--pairs", type=int, default=_PAIRS, help="questions of each kind (default: %(default)s)")
    pairs = parser.parse_args().pairs
    with instant_model() as model, running_stack() as stack, _bare(stack, model) as bare:
        asyncio.run(_run(stack, bare, model, pairs))


@contextmanager
def instant_model() -> Iterator[str]:
    """Its address is in this process's environment, which the stack inherits."""
    port = free_port()
    url = f"http://{LOOPBACK}:{port}/v1"
    os.environ |= {"HEADWATER_NL_MODEL": "instant", "OPENAI_API_KEY": "any", "OPENAI_BASE_URL": url}
    with _python("benchmarks.instant_model", str(port), _SQL):
        yield url


@contextmanager
def _bare(stack: StackFile, model: str) -> Iterator[str]:
    port = free_port()
    url = f"http://{LOOPBACK}:{port}"
    with _python("benchmarks.bare_question", stack.control_admin_dsn, f"{model}/chat/completions", str(port)):
        deadline = time.monotonic() + _READY_SECONDS
        while not _answers(f"{url}/health/ready"):
            if time.monotonic() > deadline:
                raise RuntimeError("the bare handler didn't start")
            time.sleep(0.1)
        yield url


@contextmanager
def _python(*arguments: str) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-m", *arguments])
    try:
        yield
    finally:
        process.terminate()
        process.wait(10)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


class _Asked(msgspec.Struct, frozen=True):
    """The connections of a question: to the service, to the bare handler, and to the model, which reports its time."""

    service: LeanConnection
    bare: LeanConnection
    model: LeanConnection
    key: str

    def question(self, body: dict[str, Any]) -> float:
        return self._seconds(self.service, "/api/v1/query_executions", body)

    def floor(self, body: dict[str, Any]) -> float:
        return self._seconds(self.bare, "/bare", body)

    def _seconds(self, line: LeanConnection, path: str, body: dict[str, Any]) -> float:
        """Without the model's time."""
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = line.request("POST", path, headers, json.dumps(body).encode())
        started = time.perf_counter()
        status, answer = line.exchange(request)
        seconds = time.perf_counter() - started
        if status not in (200, 201) or len(json.loads(answer).get("result", {"rows": "12"})["rows"]) != 2:
            raise RuntimeError(answer.decode())
        return seconds - took(self.model)


async def _run(stack: StackFile, bare: str, model: str, pairs: int) -> None:
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    print(f"a question that becomes a simple read, less the model's own time; {pairs} of each, interleaved\n")
    print("| engine | the model takes | question p50 | bare handler p50 | connect + query p50 | ratio | bare ratio |")
    print("|--------|-----------------|--------------|------------------|---------------------|-------|------------|")
    with _line(stack.api_url) as service, _line(bare) as floor, _line(model) as reported:
        asked = _Asked(service, floor, reported, stack.api_key)
        for engine in dict.fromkeys(host.engine for host in stack.hosts):
            await _measure(asked, await new_database(stack, engine, stack.api_key), pairs)
    print(f"\nof the ratio at most {_TARGET} is wanted; load average {os.getloadavg()[0]:.1f}")


def _line(url: str) -> LeanConnection:
    address = urlsplit(url)
    assert address.hostname is not None
    assert address.port is not None
    return LeanConnection(address.hostname, address.port)


async def _measure(asked: _Asked, database: dict[str, Any], pairs: int) -> None:
    questions: dict[int, list[float]] = {wait: [] for wait in _MODEL_MS}
    floors: dict[int, list[float]] = {wait: [] for wait in _MODEL_MS}
    plain = []
    for number in range(_WARM_UP + pairs):
        for wait in _MODEL_MS:
            body = {"database_uuid": database["uuid"], "query": taking(QUESTION, wait)}
            question = asked.question(body)
            floor = asked.floor({"database": database, "sql": _SQL, **body})
            driven = await connect_and_run(database, _SQL)
            if number >= _WARM_UP:
                questions[wait].append(question)
                floors[wait].append(floor)
                plain.append(driven)
    theirs = statistics.median(plain)
    for wait in _MODEL_MS:
        ours, floor = statistics.median(questions[wait]), statistics.median(floors[wait])
        times = f"{1000 * ours:.1f} ms | {1000 * floor:.1f} ms | {1000 * theirs:.1f} ms"
        print(f"| {database['db_type']} | {wait} ms | {times} | {ours / theirs:.2f} | {floor / theirs:.2f} |")


async def new_database(stack: StackFile, engine: str, api_key: str) -> dict[str, Any]:
    async with httpx.AsyncClient(timeout=65, trust_env=False) as http:
        answer = await http.post(
            f"{stack.api_url}/api/v1/databases",
            params={"wait": "true", "timeout": "60"},
            json={"name": "asked", "db_type": engine},
            headers={"Authorization": f"Bearer {api_key}", "Idempotency-Key": str(uuid.uuid4())},
        )
    if answer.status_code != 201:
        raise RuntimeError(answer.text)
    database: dict[str, Any] = answer.json()["data"]
    for statement in _TABLES:
        await connect_and_run(database, statement)
    return database


if __name__ == "__main__":
    main()
