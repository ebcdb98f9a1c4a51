"""`python -m benchmarks.density`: what many databases on one embedded host cost, created through the API: at rest, in a
measuring, in a reconcile, in a page of the list, in a create; at each of several numbers of databases."""

import argparse
import asyncio
import os
import time
import uuid
from collections.abc import Sequence
from statistics import median
from typing import Any

import httpx
import msgspec
from temporalio.client import Client

from app.contracts.base import Engine
from app.contracts.queues import CONTROL_QUEUE
from app.core.temporal import DATA_CONVERTER
from app.local.stack_file import StackFile
from benchmarks.processor_time import processor_seconds, resident_bytes, spent
from benchmarks.stack import running_stack

_STEPS = {Engine.MYSQL: (100, 1000, 5000), Engine.POSTGRES: (100, 1000, 2000)}
_AT_ONCE = 8
"""Creates while the host is filled."""
_TIMED = 30
"""Creates that are timed, one after the other; they are the last of each step."""
_PAGES = 30
_RUNS = 3
_REST_SECONDS = 180.0
_SETTLE_SECONDS = 20.0
"""Before the rest begins: the server writes what the creates left."""
_SESSIONS = 4000
"""Of an embedded host."""
_PROMISED = 10
"""Connections of a database of the plan `free`."""
_CREATE_SECONDS = 900.0
"""What one may take on a machine whose disk others keep busy."""
_MIB = 2**20


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """At one number of databases. Times are in seconds; `processor` has those of each service."""

    databases: int
    create: float
    create_processor: float
    """Without what all services use at rest in the same time."""
    pages: dict[str, float]
    measuring: float
    measuring_processor: dict[str, float]
    reconcile: float
    reconcile_processor: dict[str, float]
    rest: dict[str, float]
    """The share of one core that each service takes."""
    resident: dict[str, int]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.density", description=__doc__)
    parser.add_argument("--engine", choices=[engine.value for engine in Engine], default=Engine.MYSQL.value)
    parser.add_argument(
        "--databases", help="numbers, comma-separated (default: 100,1000 and 5000, or 2000 on PostgreSQL)"
    )
    parser.add_argument("--rest", type=float, default=_REST_SECONDS, help="seconds at rest (default: %(default)s)")
    arguments = parser.parse_args()
    engine = Engine(arguments.engine)
    steps = [int(number) for number in arguments.databases.split(",")] if arguments.databases else _STEPS[engine]
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} CPUs, {engine.value}\n", flush=True)
    os.environ |= {
        "HEADWATER_HOST_CAPACITY": str(max(steps) + 10),
        "HEADWATER_CONNECTION_OVERCOMMIT": str(max(10, 2 * _PROMISED * max(steps) // _SESSIONS)),
    }
    with running_stack() as stack:
        asyncio.run(_run(stack, engine, steps, arguments.rest))
    print(f"\nload average {os.getloadavg()[0]:.1f}")


async def _run(stack: StackFile, engine: Engine, steps: Sequence[int], rest: float) -> None:
    headers = {"Authorization": f"Bearer {stack.api_key}"}
    client = await Client.connect(
        stack.temporal_address, namespace=stack.temporal_namespace, data_converter=DATA_CONVERTER
    )
    costs: list[Cost] = []
    async with httpx.AsyncClient(
        base_url=f"{stack.api_url}/api/v1", headers=headers, timeout=300, trust_env=False
    ) as http:
        for step in steps:
            costs.append(await _step(stack, client, http, engine, costs[-1].databases if costs else 0, step, rest))
            _show(costs[-1])
    _table(costs)


async def _step(
    stack: StackFile, client: Client, http: httpx.AsyncClient, engine: Engine, present: int, wanted: int, rest: float
) -> Cost:
    started = time.perf_counter()
    left = iter(range(max(0, wanted - present - _TIMED)))
    await asyncio.gather(*(_fill(http, engine, left) for _ in range(_AT_ONCE)))
    print(f"filled to {wanted - _TIMED} in {time.perf_counter() - started:.0f} s", flush=True)
    before = processor_seconds(stack.processes)
    creates = [await _create(http, engine) for _ in range(min(_TIMED, wanted - present))]
    create_processor = sum(spent(before, processor_seconds(stack.processes)).values()) / len(creates)
    create_seconds = sum(creates) / len(creates)
    await asyncio.sleep(_SETTLE_SECONDS)
    measuring, measuring_processor = await _runs(stack, client, "EnforceQuotas")
    reconcile, reconcile_processor = await _runs(stack, client, "Reconcile")
    pages = {
        "first": await _page(http, {}),
        "last": await _page(http, {"starting_after": await _near_the_end(http, wanted)}),
    }
    at_rest = await _rest(stack, rest)
    return Cost(
        databases=wanted,
        create=median(creates),
        create_processor=max(0.0, create_processor - sum(at_rest.values()) * create_seconds),
        pages=pages,
        measuring=measuring,
        measuring_processor=measuring_processor,
        reconcile=reconcile,
        reconcile_processor=reconcile_processor,
        rest=at_rest,
        resident=resident_bytes(stack.processes),
    )


async def _fill(http: httpx.AsyncClient, engine: Engine, left: Any) -> None:
    for _ in left:
        await _create(http, engine)


async def _create(http: httpx.AsyncClient, engine: Engine) -> float:
    started = time.perf_counter()
    answer = await http.post(
        "/databases?wait=true&timeout=120",
        json={"name": "density", "db_type": engine.value},
        headers={"Idempotency-Key": str(uuid.uuid4())},
    )
    while answer.status_code in (200, 202) and answer.json()["data"]["status"] == "provisioning":
        if time.perf_counter() - started > _CREATE_SECONDS:
            break
        await asyncio.sleep(1)
        answer = await http.get(f"/databases/{answer.json()['data']['uuid']}")
    if answer.status_code not in (200, 201):
        raise RuntimeError(f"the create was answered with {answer.status_code}: {answer.text}")
    return time.perf_counter() - started


async def _runs(stack: StackFile, client: Client, workflow: str) -> tuple[float, dict[str, float]]:
    """The median time of a run, and the processor time that one took of each service."""
    times: list[float] = []
    before = processor_seconds(stack.processes)
    for _ in range(_RUNS):
        started = time.perf_counter()
        await client.execute_workflow(workflow, id=f"density/{uuid.uuid4()}", task_queue=CONTROL_QUEUE)
        times.append(time.perf_counter() - started)
    used = spent(before, processor_seconds(stack.processes))
    return median(times), {name: seconds / _RUNS for name, seconds in used.items()}


async def _page(http: httpx.AsyncClient, params: dict[str, str]) -> float:
    times = []
    for _ in range(_PAGES):
        started = time.perf_counter()
        (await http.get("/databases", params=params)).raise_for_status()
        times.append(time.perf_counter() - started)
    return median(times)


async def _near_the_end(http: httpx.AsyncClient, total: int) -> str:
    """The last of the page before the last one."""
    after: dict[str, str] = {}
    for _ in range(max(1, total // 100 - 1)):
        page = (await http.get("/databases", params={"limit": "100", **after})).raise_for_status().json()
        after = {"starting_after": page["data"][-1]["uuid"]}
        if not page["has_more"]:
            break
    return after["starting_after"]


async def _rest(stack: StackFile, seconds: float) -> dict[str, float]:
    started, before = time.perf_counter(), processor_seconds(stack.processes)
    await asyncio.sleep(seconds)
    took = time.perf_counter() - started
    return {name: used / took for name, used in spent(before, processor_seconds(stack.processes)).items()}


def _show(cost: Cost) -> None:
    for name in ("measuring_processor", "reconcile_processor", "rest"):
        parts = ", ".join(f"{part} {value:.3f}" for part, value in getattr(cost, name).items())
        print(f"{cost.databases} databases, {name.replace('_', ' ')}: {parts}", flush=True)
    resident = ", ".join(f"{part} {octets / _MIB:.0f} MiB" for part, octets in cost.resident.items())
    print(f"{cost.databases} databases, memory: {resident}\n", flush=True)


def _table(costs: Sequence[Cost]) -> None:
    rows = {
        "a create, median": [f"{1000 * cost.create:.0f} ms" for cost in costs],
        "its processor time": [f"{1000 * cost.create_processor:.0f} ms" for cost in costs],
        "the first page of the list": [f"{1000 * cost.pages['first']:.1f} ms" for cost in costs],
        "the last page": [f"{1000 * cost.pages['last']:.1f} ms" for cost in costs],
        "`EnforceQuotas`": [f"{cost.measuring:.2f} s" for cost in costs],
        "its processor time of a database": [_each(cost.measuring_processor, cost.databases) for cost in costs],
        "`Reconcile`": [f"{cost.reconcile:.2f} s" for cost in costs],
        "its processor time of each": [_each(cost.reconcile_processor, cost.databases) for cost in costs],
        "at rest, of one core": [f"{100 * sum(cost.rest.values()):.1f} %" for cost in costs],
        "for a thousand databases": [f"{100_000 * sum(cost.rest.values()) / cost.databases:.1f} %" for cost in costs],
    }
    print(f"| | {' | '.join(f'{cost.databases:,}' for cost in costs)} |\n|---|{'---|' * len(costs)}")
    for name, cells in rows.items():
        print(f"| {name} | {' | '.join(cells)} |")


def _each(used: dict[str, float], databases: int) -> str:
    return f"{1000 * sum(used.values()) / databases:.2f} ms"


if __name__ == "__main__":
    main()
