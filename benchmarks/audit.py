"""`python -m benchmarks.audit`: what the event in the audit log costs a request that changes something. The same API
serves both kinds in turn: one request leaves its event, the next one leaves none."""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

from app.http import authenticate
from tests import servers
from tests.support.client import Caller
from tests.support.lone_pool import LonePool, lone_pool
from tests.support.store import migrated_database

_PAIRS = 600
_WARM_UP = 20

Request = Callable[[int], Awaitable[int]]
"""Sends one; its status."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=__doc__)
    parser.add_argument("--pairs", type=int, default=_PAIRS, help="of requests of each kind (default: %(default)s)")
    arguments = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} CPUs\n")
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure(Path(folder), arguments.pairs))
    print(f"\nload average {os.getloadavg()[0]:.1f}")


async def _measure(folder: Path, pairs: int) -> None:
    async with servers.postgres(folder) as server, lone_pool(await migrated_database(server.admin_dsn)) as pool:
        caller = await pool.api.caller()
        await _compare("create from the pool, one statement", await _creates(pool, caller, pairs), 201, pairs)
        await _compare("rename", await _renames(pool, caller), 200, pairs)
        await _compare("refusal (404)", _refusals(caller), 404, pairs)


async def _creates(pool: LonePool, caller: Caller, pairs: int) -> Request:
    host = await pool.api.add_host(capacity=1_000_000, connection_capacity=100_000_000)
    await pool.add_members(2 * (pairs + _WARM_UP) + 10, host)

    async def create(_: int) -> int:
        return (await caller.create("a")).status_code

    return create


async def _renames(_: LonePool, caller: Caller) -> Request:
    uuid = (await caller.create("a")).json()["data"]["uuid"]

    async def rename(number: int) -> int:
        return (await caller.patch(f"/databases/{uuid}", {"name": f"name-{number}"})).status_code

    return rename


def _refusals(caller: Caller) -> Request:
    async def refused(_: int) -> int:
        return (await caller.delete(f"/databases/{uuid4()}")).status_code

    return refused


async def _compare(what: str, request: Request, status: int, pairs: int) -> None:
    took: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * (pairs + _WARM_UP)):
        # Which of a pair comes first changes too.
        audited = (number % 2 == 0) == (number // 2 % 2 == 0)
        began = time.perf_counter()
        if audited:
            answered = await request(number)
        else:
            with _without_events():
                answered = await request(number)
        if number >= 2 * _WARM_UP:
            took[audited].append(time.perf_counter() - began)
        assert answered == status, f"{what}: {answered}"
    figures = {
        name: tuple(statistics.quantiles(took[kind], n=20)[place] for kind in (True, False))
        for name, place in (("p50", 9), ("p95", 18))
    }
    for name, (with_event, without) in figures.items():
        print(
            f"{what:38} {name}  {1000 * with_event:6.2f} ms with, {1000 * without:6.2f} ms without:"
            f" {with_event / without:.3f}"
        )


def _without_events() -> Any:
    """For a block in which the API drafts no event."""
    return patch.object(authenticate, "request_draft", lambda *_, **__: None)


if __name__ == "__main__":
    main()
