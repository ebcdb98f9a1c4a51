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
            # The first attempts don't wait for their workflows, which Temporal is asked for in vain. On a crowded
            # machine one may fail: the rest waits for its workflow.
            await until(lambda: _each_engine_has_made_some(stack, ledger))
            await until(lambda: stack.control("SELECT 1 FROM workflow_starts WHERE last_error IS NOT NULL"))
    finally:
        # It forgets its connections too.
        signal_process(frozen, signal.SIGKILL)
    await check(stack, ledger)
    async with client_of(stack) as client:
        assert not client.strange
        await asyncio.gather(*(delete(client, ledger, database) for database in ledger.kept))
    await check(stack, ledger)


async def _each_engine_has_made_some(stack: LiveStack, ledger: Ledger) -> bool:
    rows = await stack.control(
        "SELECT DISTINCT engine FROM databases WHERE status = 'active' AND uuid = any($1::uuid[])",
        list(ledger.created.values()),
    )
    return {row["engine"] for row in rows} == set(ENGINES)
