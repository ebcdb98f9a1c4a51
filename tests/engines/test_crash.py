"""A worker that is killed anywhere in `create`: the next call finds its way, and a removal misses nothing."""

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process

import msgspec

from app.engines.base import Tenant
from tests.engines.harness import LIMITS, EngineHost, new_tenant

MOMENTS = 10
"""Evenly over the time that a whole `create` takes."""


async def worker() -> Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.engines.create_once", stdin=PIPE, stdout=PIPE
    )
    assert process.stdout
    assert await process.stdout.readline() == b"ready\n"
    return process


async def begin(process: Process, host: EngineHost, tenant: Tenant) -> None:
    assert process.stdin
    order = (host.adapter.engine, host.administrator, tenant, LIMITS)
    process.stdin.write(msgspec.json.encode(order) + b"\n")
    await process.stdin.drain()


async def whole_time(host: EngineHost, process: Process) -> float:
    """Seconds that an undisturbed `create` takes in a fresh process."""
    tenant = new_tenant()
    began = time.monotonic()
    await begin(process, host, tenant)
    assert process.stdout
    assert await process.stdout.readline() == b"done\n"
    taken = time.monotonic() - began
    await process.communicate()
    await host.adapter.destroy(tenant)
    return taken


async def test_killed_at_any_moment(host: EngineHost) -> None:
    before = await host.catalog()
    first, *workers = await asyncio.gather(*(worker() for _ in range(MOMENTS + 1)))
    whole = await whole_time(host, first)
    half_made = 0
    for moment, process in enumerate(workers):
        tenant = new_tenant()
        await begin(process, host, tenant)
        await asyncio.sleep(whole * moment / MOMENTS)
        if process.returncode is None:
            process.kill()
        await process.communicate()
        half_made += await host.catalog() != before
        if moment % 2:
            await host.adapter.create(tenant, LIMITS)
            await host.adapter.verify_login(tenant)
        await host.adapter.destroy(tenant)
        assert await host.catalog() == before, moment
    await asyncio.sleep(0.3)
    assert await host.catalog() == before, "nothing is finished behind our back"
    assert half_made
