"""A process that a test stops holds no lock of our own database."""

import asyncio
import sys

import asyncpg

from tests.support.freezing import frozen

HOLDS_A_LOCK_NOW_AND_THEN = """
import asyncio, sys, asyncpg

async def main():
    connection = await asyncpg.connect(sys.argv[1])
    while True:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(1)")
            print("holds it", flush=True)
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.1)

asyncio.run(main())
"""


async def test_what_stands_still_holds_no_lock(control_dsn: str) -> None:
    arguments = ("-c", HOLDS_A_LOCK_NOW_AND_THEN, control_dsn)
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    other = await asyncpg.connect(control_dsn)
    assert process.stdout is not None
    try:
        for _ in range(3):
            await process.stdout.readline()
            async with frozen(process.pid, control_dsn), other.transaction():
                assert await other.fetchval("SELECT pg_try_advisory_xact_lock(1)")
    finally:
        await other.close()
        process.kill()
        await process.wait()
