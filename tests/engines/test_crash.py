"""A worker that is killed anywhere in `create`: the next call finds its way, and a removal misses nothing."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process

import msgspec

from app.engines.base import Tenant
from tests.engines.harness import LIMITS, EngineHost, new_tenant
from tests.engines.ways import Way, way_to
from tests.support.waiting import LIMIT_SECONDS, until

MOMENTS = 10
"""Evenly over what a whole `create` sends."""


async def worker() -> Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.engines.create_once", stdin=PIPE, stdout=PIPE
    )
    assert process.stdout
    assert await process.stdout.readline() == b"ready\n"
    return process


async def begin(process: Process, host: EngineHost, way: Way, tenant: Tenant) -> None:
    assert process.stdin
    address = msgspec.structs.replace(host.administrator, port=way.port)
    process.stdin.write(msgspec.json.encode((host.adapter.engine, address, tenant, LIMITS)) + b"\n")
    await process.stdin.drain()


async def sent_by_a_whole_one(host: EngineHost, process: Process) -> int:
    """How often an undisturbed `create` in a fresh process sends something."""
    tenant = new_tenant()
    async with way_to(host) as way:
        await begin(process, host, way, tenant)
        assert process.stdout
        assert await process.stdout.readline() == b"done\n"
        await process.communicate()
    await host.adapter.destroy(tenant)
    return way.sent


async def sent_or_ended(way: Way, process: Process) -> None:
    """A server that knows a login already asks less of it, so that a later create may end with fewer messages."""
    waits = [asyncio.create_task(way.last_sent.wait()), asyncio.create_task(process.wait())]
    done, _ = await asyncio.wait(waits, timeout=LIMIT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    for one in waits:
        one.cancel()
    assert done


async def test_killed_at_any_moment(host: EngineHost) -> None:
    before = await host.catalog()
    first, *workers = await asyncio.gather(*(worker() for _ in range(MOMENTS + 1)))
    whole = await sent_by_a_whole_one(host, first)
    assert whole > MOMENTS
    half_made = 0
    for moment, process in enumerate(workers, 1):
        tenant = new_tenant()
        async with way_to(host, last=whole * moment // MOMENTS) as way:
            await begin(process, host, way, tenant)
            await sent_or_ended(way, process)
            if process.returncode is None:
                process.kill()
            await process.communicate()
        half_made += await host.catalog() != before
        if moment % 2:
            await host.adapter.create(tenant, LIMITS)
            await host.adapter.verify_login(tenant)
        await host.adapter.destroy(tenant)
        assert await host.catalog() == before, moment
    await host.adapter.close()
    await until(lambda: _none_at_work(host))
    assert await host.catalog() == before, "nothing is finished behind our back"
    assert half_made


async def _none_at_work(host: EngineHost) -> bool:
    return not await host.sessions(host.administrator.user)
