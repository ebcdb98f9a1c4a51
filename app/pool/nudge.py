"""Starting the refill after a claim. It is a hint, whose loss costs the wait for the next scheduled run."""

from datetime import timedelta
from functools import partial

from temporalio.client import Client
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy

from app.contracts.pool import RefillPool
from app.contracts.queues import CONTROL_QUEUE
from app.core.debounce import Debouncer
from app.outbox.workflow_starts import TASK_TIMEOUT, UPKEEP, UPKEEP_FAIRNESS

_WORKFLOW_ID = "refill-pool/nudged"
_GATHER_SECONDS = 0.25
"""Claims within this time are one nudge."""
_RPC_TIMEOUT = timedelta(seconds=3)


async def nudge(client: Client) -> None:
    """Has the pools refilled, now or once the run under way has ended. Raises what Temporal's client raises."""
    await client.start_workflow(
        RefillPool.run,
        id=_WORKFLOW_ID,
        task_queue=CONTROL_QUEUE,
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        start_signal="nudge",
        static_summary="All pools, after a claim",
        priority=Priority(priority_key=UPKEEP, fairness_key=UPKEEP_FAIRNESS),
        task_timeout=TASK_TIMEOUT,
        rpc_timeout=_RPC_TIMEOUT,
    )


class Nudger:
    """Debounces the claims of one process, and makes no request wait."""

    def __init__(self, client: Client) -> None:
        self._debouncer = Debouncer(_GATHER_SECONDS, partial(nudge, client), lost="pool_nudge_lost")

    def nudge_soon(self) -> None:
        self._debouncer.schedule()

    async def close(self) -> None:
        """Sends what is left to send; it takes no longer than one call's time limit."""
        await self._debouncer.close()
