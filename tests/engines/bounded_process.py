"""A process that does one thing on a tenant's database with little memory to do it in, and prints what came of it.

Run as a script, with JSON on its standard input: `engine`, `address`, `tenant`, `reader` (a password), `calls`. Each
call is a list: `read`, `write`, `script` with a statement, or `describe`.
"""

import asyncio
import json
import resource
import sys
from pathlib import Path
from typing import Any

import msgspec

from app.contracts.base import Engine
from app.engines.base import AdminAddress, EngineAdapter, EngineError, Tenant
from app.engines.querying import QueryLimits
from app.engines.registry import open_adapter
from tests.engines.patience import be_patient

MEMORY = 288 * 1024 * 1024
"""Octets beyond what the process has when it begins."""
LIMITS = QueryLimits(seconds=60, rows=1000)
SECONDS = 60.0


class Job(msgspec.Struct):
    engine: Engine
    address: AdminAddress
    tenant: Tenant
    reader: str
    calls: list[list[str]]


def limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


async def outcome(adapter: EngineAdapter, job: Job, call: list[str]) -> dict[str, Any]:
    try:
        return await carried_out(adapter, job, call)
    except EngineError as error:
        return {"error": type(error).__name__, "message": str(error)}


async def carried_out(adapter: EngineAdapter, job: Job, call: list[str]) -> dict[str, Any]:
    kind, *statement = call
    if kind == "script":
        async with adapter.script_session(job.tenant, SECONDS) as script:
            await script.begin()
            rows = await script.run(statement[0], SECONDS)
            await script.commit()
            return {"rows": rows}
    if kind == "write":
        async with adapter.writing(job.tenant, LIMITS) as writing:
            return {"rows": await writing.write(statement[0])}
    async with adapter.reading(job.tenant, job.reader, LIMITS) as reading:
        if kind == "describe":
            tables = (await reading.describe()).tables
            longest = max((len(c.comment or "") + len(c.type) for t in tables for c in t.columns), default=0)
            return {"tables": len(tables), "columns": sum(len(t.columns) for t in tables), "longest": longest}
        read = await reading.read(statement[0])
        return {"rows": len(read.rows), "truncated": read.truncated}


async def main(job: Job) -> None:
    adapter = open_adapter(job.engine, job.address)
    # What a first connection needs is no part of an answer.
    async with adapter.reading(job.tenant, job.reader, LIMITS) as session:
        await session.read("SELECT 1")
    limit_memory()
    sys.stdout.write(json.dumps([await outcome(adapter, job, call) for call in job.calls]))
    await adapter.close()


if __name__ == "__main__":
    be_patient()
    asyncio.run(main(msgspec.json.decode(sys.stdin.buffer.read(), type=Job)))
