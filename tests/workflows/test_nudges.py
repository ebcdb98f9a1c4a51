"""The hint that follows a claim: many are one, and none is lost to a look that is under way."""

import asyncio

from temporalio.client import Client, WorkflowExecutionStatus

from app.databases.pool.claim import Nudger, nudge
from tests.support.waiting import until
from tests.workflows.fakes import Script
from tests.workflows.stage import workers


async def ended(client: Client) -> bool:
    description = await client.get_workflow_handle("refill-pool/nudged").describe()
    return description.status is WorkflowExecutionStatus.COMPLETED


async def test_a_hundred_claims_are_a_few_looks(client: Client) -> None:
    script, nudger = Script(), Nudger(client)
    async with workers(client, script):
        for _ in range(100):
            nudger.nudge_soon()
            await asyncio.sleep(0.002)
        await nudger.close()
        await until(lambda: ended(client))
    assert 1 <= script.calls.count("refill_pool") <= 5


async def test_a_claim_during_the_last_look_is_seen(client: Client) -> None:
    script = Script(hangs=frozenset({"refill_pool"}))
    async with workers(client, script):
        await nudge(client)
        await asyncio.wait_for(script.hanging.wait(), 60)
        await nudge(client)
        script.hangs = frozenset()
        await until(lambda: ended(client))
    assert script.calls.count("refill_pool") == 2
