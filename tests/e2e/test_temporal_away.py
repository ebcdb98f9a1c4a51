"""While Temporal is away creates are accepted at once, and kept once it is back."""

import asyncio
import signal
import time

from tests.e2e.chaos import ENGINES, Ledger, check, create, delete
from tests.e2e.patient_client import client_of
from tests.support.stack import LiveStack, signal_process

AT_ONCE_SECONDS = 3
"""On a shared machine; the request itself waits for nothing."""
SOON_SECONDS = 20


async def test_creates_are_accepted_and_made_when_it_is_back(stack: LiveStack) -> None:
    ledger = Ledger()
    frozen = stack.pid("temporal")
    signal_process(frozen, signal.SIGSTOP)
    try:
        async with client_of(stack) as client:
            started = time.monotonic()
            for engine in ENGINES * 4:
                asked = time.monotonic()
                await create(client, ledger, engine, wait=None)
                assert time.monotonic() - asked < AT_ONCE_SECONDS
            await asyncio.sleep(max(0, 5 - (time.monotonic() - started)))
            rows = await stack.control(
                "SELECT DISTINCT status FROM databases WHERE uuid = any($1::uuid[])", list(ledger.created.values())
            )
            assert [row["status"] for row in rows] == ["provisioning"]
    finally:
        # It forgets its connections too.
        signal_process(frozen, signal.SIGKILL)
    back = time.monotonic()
    await check(stack, ledger)
    assert time.monotonic() - back < SOON_SECONDS
    async with client_of(stack) as client:
        assert not client.strange
        await asyncio.gather(*(delete(client, ledger, database) for database in ledger.kept))
    await check(stack, ledger)
