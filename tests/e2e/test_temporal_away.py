"""While Temporal is away creates are accepted and made; their workflows end once it is back."""

import asyncio
import signal

from tests.e2e.chaos import ENGINES, Ledger, check, create, delete
from tests.e2e.patient_client import client_of
from tests.support.stack import LiveStack, signal_process
from tests.support.waiting import until


async def test_creates_are_made_while_it_is_away_and_deletions_when_it_is_back(stack: LiveStack) -> None:
    ledger = Ledger()
    frozen = stack.pid("temporal")
    signal_process(frozen, signal.SIGSTOP)
    try:
        async with client_of(stack) as client:
            for engine in ENGINES * 4:
                await create(client, ledger, engine, wait=None)
            # The first attempts don't wait for their workflows, which Temporal is asked for in vain.
            await until(lambda: _are_active(stack, ledger))
            await until(lambda: stack.control("SELECT 1 FROM workflow_starts WHERE last_error IS NOT NULL"))
    finally:
        # It forgets its connections too.
        signal_process(frozen, signal.SIGKILL)
    await check(stack, ledger)
    async with client_of(stack) as client:
        assert not client.strange
        await asyncio.gather(*(delete(client, ledger, database) for database in ledger.kept))
    await check(stack, ledger)


async def _are_active(stack: LiveStack, ledger: Ledger) -> bool:
    rows = await stack.control(
        "SELECT DISTINCT status FROM databases WHERE uuid = any($1::uuid[])", list(ledger.created.values())
    )
    return [row["status"] for row in rows] == ["active"]
