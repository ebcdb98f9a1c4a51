"""The hint of an API of 0.1.0 that follows a claim: none is lost to a look that is under way."""

import asyncio

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import WorkflowIDConflictPolicy

from app.contracts.pool import RefillPool
from app.contracts.queues import CONTROL_QUEUE
from tests.support.waiting import until
from tests.workflows.fakes import Script
from tests.workflows.stage import workers

_ID = "refill-pool/nudged"


async def nudge(client: Client) -> None:
    await client.start_workflow(
        RefillPool.run,
        id=_ID,
        task_queue=CONTROL_QUEUE,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        start_signal="nudge",
    )


async def ended(client: Client) -> bool:
    description = await client.get_workflow_handle(_ID).describe()
    return description.status is WorkflowExecutionStatus.COMPLETED


async def test_a_claim_during_the_last_look_is_seen(client: Client) -> None:
    script = Script(hangs=frozenset({"refill_pool"}))
    async with workers(client, script):
        await nudge(client)
        await asyncio.wait_for(script.hanging.wait(), 60)
        await nudge(client)
        script.hangs = frozenset()
        await until(lambda: ended(client))
    assert script.calls.count("refill_pool") == 2
