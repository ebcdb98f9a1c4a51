"""`python -m benchmarks.streams`: what open event streams cost the API while nothing happens."""

import argparse
import asyncio
import os
import platform
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import psutil

from app.operations.records import find
from app.store.notify import announce
from app.store.session import execute, fetch
from benchmarks.api_servers import Account, Servers, account, running_servers
from benchmarks.processor_time import processor_seconds, spent

_STREAMS, _ROUNDS, _SECONDS = 1000, 3, 60.0
_TARGET = 5.0
"""Percent of a core that the streams cost at most."""
_CHANGES = 200


class OpenStreams:
    """Connections that read what comes, each with the stream of an operation of its own."""

    def __init__(self) -> None:
        self.events = 0
        self.comments = 0
        self._changed = asyncio.Event()

    async def follow(self, servers: Servers, caller: Account, operation: UUID) -> None:
        address = servers.api.removeprefix("http://")
        host, port = address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(
                f"GET /api/v1/operations/{operation}/events HTTP/1.1\r\nHost: {address}\r\n"
                f"Authorization: Bearer {caller.api_key}\r\n\r\n".encode()
            )
            async for line in reader:
                self.events += line.startswith(b"data: ")
                self.comments += line.startswith(b": ")
                if line.startswith(b"data: "):
                    self._changed.set()
        finally:
            writer.close()

    async def next_event(self) -> None:
        self._changed.clear()
        await self._changed.wait()


@asynccontextmanager
async def _opened(servers: Servers, caller: Account, operations: list[UUID]) -> AsyncIterator[OpenStreams]:
    streams = OpenStreams()
    tasks = [asyncio.create_task(streams.follow(servers, caller, operation)) for operation in operations]
    try:
        while streams.events < len(operations):
            if any(task.done() for task in tasks):
                raise RuntimeError("a stream has ended")
            await asyncio.sleep(0.1)
        yield streams
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run(count: int, rounds: int, seconds: float) -> None:
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    async with running_servers() as servers:
        caller = await account("streams")
        operations = await _add_operations(caller, count)
        rest: list[float] = []
        open_ones: list[float] = []
        memory = psutil.Process(servers.api_pid).memory_info().rss
        for _ in range(rounds):
            rest.append(await _percent(servers, seconds))
            async with _opened(servers, caller, operations) as streams:
                grown = psutil.Process(servers.api_pid).memory_info().rss - memory
                open_ones.append(await _percent(servers, seconds))
                delays = await _delays(streams, operations)
        print(f"{count} idle streams, {rounds} times {seconds:g} s each, in turn with rest; percent of a core\n")
        print("| | median | lowest | highest |\n|---|---|---|---|")
        for name, measured in (("rest", rest), ("streams", open_ones)):
            print(f"| {name} | {statistics.median(measured):.2f} | {min(measured):.2f} | {max(measured):.2f} |")
        cost = statistics.median(open_ones) - statistics.median(rest)
        print(f"\nthe streams cost {cost:.2f} % of a core; the target is at most {_TARGET}")
        print(f"{grown / count / 1024:.0f} KiB of memory for each; {streams.comments} comments in the last round")
        p50, p99 = (sorted(delays)[int(len(delays) * at)] for at in (0.5, 0.99))
        print(f"a change of one of them is there after {1000 * p50:.1f} ms (p50), {1000 * p99:.1f} ms (p99)")


async def _percent(servers: Servers, seconds: float) -> float:
    """Of a core, of the API's process."""
    processes = {"api": [servers.api_pid]}
    before = processor_seconds(processes)
    started = time.perf_counter()
    await asyncio.sleep(seconds)
    took = time.perf_counter() - started
    return 100 * spent(before, processor_seconds(processes)).get("api", 0.0) / took


async def _delays(streams: OpenStreams, operations: list[UUID]) -> list[float]:
    """Seconds from the commit of a change to its event, one change after the other."""
    delays = []
    for operation in operations[:_CHANGES]:
        record = await find(operation)
        assert record is not None, "it was made for this"
        told = asyncio.create_task(streams.next_event())
        await execute("UPDATE operations SET version = version + 1 WHERE id = $1", record.id)
        started = time.perf_counter()
        await announce(record.database)
        await told
        delays.append(time.perf_counter() - started)
    return delays


async def _add_operations(caller: Account, count: int) -> list[UUID]:
    """Open operations, each on a database of its own."""
    (host,) = await fetch(
        "INSERT INTO engine_hosts (engine, flavour, version, region, host, port, admin_sealed, capacity,"
        " connection_capacity) VALUES ('postgres', 'postgres', '18', 'us-east-1', 'db.example.com', 5432, '', 1, 1)"
        " RETURNING id"
    )
    rows = await fetch(
        """
        WITH made AS (
            INSERT INTO databases (uuid, team_id, name, engine, region, plan, status, host_id, engine_name, connections)
            SELECT gen_random_uuid(), $1, 'db-' || n, 'postgres', 'us-east-1', 'free', 'provisioning', $2, 't' || n, 10
            FROM generate_series(1, $3::int) AS n RETURNING id, team_id
        )
        INSERT INTO operations (uuid, team_id, database_id, engine, type, status, steps)
        SELECT gen_random_uuid(), team_id, id, 'postgres', 'create', 'pending', '[]' FROM made RETURNING uuid
        """,
        caller.team_id,
        host["id"],
        count,
    )
    return [row["uuid"] for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams", description=__doc__)
    parser.add_argument("--streams", type=int, default=_STREAMS, help="open at once (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="of rest and of streams (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="of each (default: %(default)s)")
    given = parser.parse_args()
    asyncio.run(_run(given.streams, given.rounds, given.seconds))


if __name__ == "__main__":
    main()
