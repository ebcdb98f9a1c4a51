"""A tenant's own work at a fixed rate, however fast it is answered, so that what is measured is what it waits for."""

import asyncio
import time

import asyncpg

_A_SECOND = 50
"""Few enough that the work itself leaves the machine idle."""


async def felt(connection_string: str, seconds: float) -> list[float]:
    """The seconds that each of its transactions took; those that one before them held up, since they were due."""
    connection = await asyncpg.connect(connection_string)
    try:
        taken: list[float] = []
        began = time.perf_counter()
        for number in range(int(seconds * _A_SECOND)):
            due = began + number / _A_SECOND
            sent = due
            if time.perf_counter() < due:
                await asyncio.sleep(due - time.perf_counter())
                sent = time.perf_counter()
            await connection.execute("UPDATE busy SET value = value + 1 WHERE id = 7")
            taken.append(time.perf_counter() - sent)
        return taken
    finally:
        await connection.close()
