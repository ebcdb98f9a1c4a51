"""`python -m benchmarks.capacity`: how much of each kind of work a stack carries, what one unit of it costs each
process, and which of them is the first that has no more to give.

The load is open-loop (`benchmarks.open_loop`), at growing rates until the service no longer keeps up. It comes from
this process, on the same processors: what it takes of them is shown with the rest. What the services use at rest is
measured first, and taken off.
"""

import argparse
import asyncio
import json
import os
import platform
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
import uvloop

from app.auth.keys import KeyControls, create_key
from app.auth.scopes import TEAM_SCOPES
from app.auth.users import create_user
from app.contracts.base import Engine
from app.local.ports import LOOPBACK, free_port
from app.local.python_services import ApiService
from app.local.services import start
from app.local.stack_file import StackFile
from app.store.session import connected, fetch_scalar
from benchmarks.open_loop import Connections, Load, run
from benchmarks.processor_time import processor_seconds, spent
from benchmarks.questions import QUESTION, instant_model, new_database
from benchmarks.stack import running_stack

_SECONDS = 6.0
_REST_SECONDS = 5.0
_GROWTH = 1.5
_TRIES = 3
_POOL = 200
_PREPARED = 450
"""Databases that deletions end, of all rates together."""
_AT_ONCE = 16
_UNLIMITED = KeyControls(requests_per_minute=2_000_000_000)
_CREATE = {
    Engine.POSTGRES: b'{"name": "capacity", "db_type": "postgres"}',
    Engine.MYSQL: b'{"name": "capacity", "db_type": "mysql"}',
}


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of work: the first rate, in units a second, and the p95 in seconds within which it counts as carried."""

    name: str
    first: float
    p95: float
    most: int | None = None
    """Units there are in all, such as members of the pool."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    load: Load
    processor: dict[str, float]
    """Seconds of each service, and of this process."""

    @property
    def units(self) -> int:
        return max(len(self.load.times), 1)

    def busiest(self) -> str:
        """The service that is nearest to a whole core, which is all that a Python process can use."""
        name, seconds = max(self.processor.items(), key=lambda item: item[1])
        return f"{name} {100 * seconds / self.load.seconds:.0f} %"

    def each(self) -> str:
        parts = {name: 1000 * seconds / self.units for name, seconds in self.processor.items()}
        return ", ".join(f"{name} {cost:.2f}" for name, cost in parts.items() if cost >= 0.01)


READS = Kind(name="read of a database", first=500, p95=0.05)
PAGES = Kind(name="page of 25 databases", first=200, p95=0.1)
POOLED = Kind(name="create from the pool", first=20, p95=0.05, most=_POOL)
QUESTIONS = Kind(name="question", first=4, p95=0.5)
COLD_POSTGRES = Kind(name="cold create, PostgreSQL", first=1, p95=2.0)
COLD_MYSQL = Kind(name="cold create, MySQL", first=4, p95=1.0)
DELETES = Kind(name="delete", first=5, p95=1.0, most=_PREPARED)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capacity", description=__doc__)
    parser.add_argument(
        "--processes", type=int, nargs="+", default=[1, 2, 4], help="of the API, one number after the other (1 2 4)"
    )
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="of each rate (default: %(default)s)")
    parser.add_argument("--only", default="", help="kinds of work whose name has this, so that it can be run in parts")
    given = parser.parse_args()
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    print(f"load {os.getloadavg()[0]:.1f} before; {given.seconds:g} s at each rate\n")
    print(
        "| work | API processes | carried, units/s | p50 | p95 | p99 | not carried | busiest then | ms of each unit |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for pool, kinds in ((_POOL, (READS, PAGES, POOLED, QUESTIONS)), (0, (COLD_MYSQL, DELETES, COLD_POSTGRES))):
        if not any(given.only in kind.name for kind in kinds):
            continue
        with instant_model(), running_stack(pool if POOLED in kinds and given.only in POOLED.name else 0) as stack:
            uvloop.run(_measure(stack, pool, given.processes, given.seconds, given.only))
    print(f"\nload {os.getloadavg()[0]:.1f} after")


async def _measure(stack: StackFile, pool: int, counts: list[int], seconds: float, only: str) -> None:
    async with AsyncExitStack() as opened:
        await opened.enter_async_context(connected(stack.control_admin_dsn))
        key = await _unlimited_key()
        asked = (await new_database(stack, Engine.POSTGRES, key))["uuid"] if pool else ""
        # Without a pool the API is not what ends first.
        for count in counts if pool else counts[:1]:
            async with _api_processes(stack, count) as (urls, processes):
                connections = Connections(urls, key)
                rest = await _at_rest(processes)
                for kind, work in _works(connections, pool, asked):
                    if only in kind.name:
                        await _limit(kind, work, processes, rest, count, seconds)
                connections.close()


def _works(connections: Connections, pool: int, asked: str) -> list[tuple[Kind, "Work"]]:
    works: list[tuple[Kind, Work]] = []
    if pool:
        works += [
            (READS, Read(connections)),
            (PAGES, Page(connections)),
            (POOLED, Create(connections, Engine.POSTGRES, pool)),
            (QUESTIONS, Question(connections, asked)),
        ]
    else:
        works += [(COLD_MYSQL, Create(connections, Engine.MYSQL)), (DELETES, Delete(connections))]
        works += [(COLD_POSTGRES, Create(connections, Engine.POSTGRES))]
    return works


async def _limit(
    kind: Kind,
    work: "Work",
    processes: dict[str, list[int]],
    rest: dict[str, float],
    apis: int,
    seconds: float,
) -> None:
    """Prints the highest rate that is carried, and the one above it that is not."""
    carried: Cost | None = None
    rate = kind.first
    while True:
        cost = await _tried(kind, work, processes, rest, rate, seconds)
        if not cost.load.holds(kind.p95):
            break
        carried, rate = cost, rate * _GROWTH
    load = cost.load
    shown = carried or cost
    times = [f"{1000 * shown.load.at(share):.0f} ms" for share in (0.5, 0.95, 0.99)]
    limit = f"{load.rate:.0f}: p95 {1000 * load.at(0.95):.0f} ms" + (
        f", {load.refused} refused ({load.fault})" if load.refused else ""
    )
    rate_shown = f"{carried.load.rate:.0f}" if carried else "none"
    print(
        f"| {kind.name} | {apis} | {rate_shown} | {' | '.join(times)} | {limit} | {cost.busiest()} | {shown.each()} |",
        flush=True,
    )


async def _tried(
    kind: Kind, work: "Work", processes: dict[str, list[int]], rest: dict[str, float], rate: float, seconds: float
) -> Cost:
    """The first of a few tries that is carried, or the last: a moment in which the machine does something else says
    nothing about the rate."""
    for _ in range(_TRIES):
        await work.prepare(int(rate * seconds))
        before, started = processor_seconds(processes), time.process_time()
        load = await run(rate, min(seconds, kind.most / rate) if kind.most else seconds, work.send)
        used = spent(before, processor_seconds(processes))
        used = {name: max(all_ - rest.get(name, 0) * load.seconds, 0) for name, all_ in used.items()}
        used["sender"] = time.process_time() - started
        if load.holds(kind.p95):
            break
    return Cost(load=load, processor=used)


async def _at_rest(processes: dict[str, list[int]]) -> dict[str, float]:
    """Seconds of processor time a second, by service."""
    before = processor_seconds(processes)
    await asyncio.sleep(_REST_SECONDS)
    return {name: used / _REST_SECONDS for name, used in spent(before, processor_seconds(processes)).items()}


class Work:
    """One kind of request."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def prepare(self, count: int) -> None:
        """Before so many are sent."""

    async def send(self, number: int) -> bool:
        """Whether the answer is the wanted one."""
        raise NotImplementedError


class Read(Work):
    _path = ""

    async def prepare(self, count: int) -> None:
        if not self._path:
            self._path = f"/api/v1/databases/{await created(self._connections)}"

    async def send(self, number: int) -> bool:
        status, _ = await self._connections.ask("GET", self._path)
        return status == 200


class Page(Work):
    async def send(self, number: int) -> bool:
        status, _ = await self._connections.ask("GET", "/api/v1/databases?limit=25")
        return status == 200


class Question(Work):
    """That a model answers at once."""

    def __init__(self, connections: Connections, database: str) -> None:
        super().__init__(connections)
        self._body = json.dumps({"database_uuid": database, "query": QUESTION}).encode()

    async def send(self, number: int) -> bool:
        status, _ = await self._connections.ask("POST", "/api/v1/query_executions", body=self._body)
        return status == 200


class Create(Work):
    """With `pool`, once it is full again."""

    def __init__(self, connections: Connections, engine: Engine, pool: int = 0) -> None:
        super().__init__(connections)
        self._engine, self._pool = engine, pool

    async def prepare(self, count: int) -> None:
        ready = "SELECT count(*) FROM databases WHERE team_id IS NULL AND status = 'active' AND engine = $1"
        # Another process fills it.
        while self._pool and await fetch_scalar(int, ready, self._engine.value) < self._pool:  # noqa: ASYNC110
            await asyncio.sleep(0.5)

    async def send(self, number: int) -> bool:
        path = "/api/v1/databases" + ("" if self._pool else "?wait=true&timeout=60")
        status, _ = await self._connections.ask("POST", path, body=_CREATE[self._engine], key=str(uuid.uuid4()))
        return status == 201


class Delete(Work):
    """Of MySQL databases, which cost less to prepare. All are made first: a team of which some dozens are deleted makes
    no more."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        self._left: list[str] | None = None

    async def prepare(self, count: int) -> None:
        if self._left is None:
            self._left = []
            while len(self._left) < _PREPARED:
                self._left += await asyncio.gather(*(created(self._connections, Engine.MYSQL) for _ in range(_AT_ONCE)))

    async def send(self, number: int) -> bool:
        if not self._left:
            raise RuntimeError("none is left to delete")
        path = f"/api/v1/databases/{self._left.pop()}"
        status, _ = await self._connections.ask("DELETE", path, key=str(uuid.uuid4()))
        return status == 200


async def created(connections: Connections, engine: Engine = Engine.POSTGRES) -> str:
    """The uuid of a new database. Raises `RuntimeError` with the answer that is none."""
    path = "/api/v1/databases?wait=true&timeout=60"
    status, body = await connections.ask("POST", path, body=_CREATE[engine], key=str(uuid.uuid4()))
    if status != 201:
        raise RuntimeError(body.decode())
    uuid_: str = json.loads(body)["data"]["uuid"]
    return uuid_


@asynccontextmanager
async def _api_processes(stack: StackFile, count: int) -> AsyncIterator[tuple[list[str], dict[str, list[int]]]]:
    """The stack's own and further ones: their addresses, and the process ids of all services."""
    async with AsyncExitStack() as opened:
        urls, processes = [stack.api_url], {name: list(ids) for name, ids in stack.processes.items()}
        environ = _environ(processes["api"][0])
        for number in range(1, count):
            port = free_port()
            log = Path(environ["HEADWATER_HOME"]) / f"api-{number}.log"
            known: partial[dict[str, str]] = partial(dict, environ | {"HEADWATER_API_PORT": str(port)})
            service = ApiService(f"api-{number}", port=port, log=log, environ=known, host=LOOPBACK)
            child = await start(service)
            opened.push_async_callback(child.stop)
            urls.append(service.url)
            processes["api"].append(child.pid)
        yield urls, processes


def _environ(process: int) -> dict[str, str]:
    """Of a process of ours: its addresses and secrets."""
    given = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    return dict(one.decode().split("=", 1) for one in given if one)


async def _unlimited_key() -> str:
    name = f"capacity-{uuid.uuid4().hex[:8]}"
    user = await create_user(email=f"{name}@example.com", name=name, tier="pro")
    return (await create_key(user_id=user.user_id, name=name, scopes=list(TEAM_SCOPES), controls=_UNLIMITED)).api_key


if __name__ == "__main__":
    main()
