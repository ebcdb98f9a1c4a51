"""Telling the refill, after a claim, that there is something to do: a hint, whose loss costs the wait for the next
scheduled run."""

import asyncio
from datetime import timedelta

import structlog
from temporalio.client import Client
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy

from app.contracts.pool import RefillPool
from app.contracts.queues import CONTROL_QUEUE
from app.dispatch.starts import TASK_TIMEOUT, UPKEEP, UPKEEP_FAIRNESS

_WORKFLOW_ID = "refill-pool/nudged"
_GATHER_SECONDS = 0.25
"""Claims within this time are one nudge."""
_RPC_TIMEOUT = timedelta(seconds=3)

log = structlog.get_logger(__name__)


async def nudge(client: Client) -> None:
    """Has the pools looked at, now or once the look under way has ended. Raises what Temporal's client raises."""
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
    """Gathers the claims of one process, and makes no request wait."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._wanted = False
        self._task: asyncio.Task[None] | None = None

    def nudge_soon(self) -> None:
        self._wanted = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._nudge())

    async def close(self) -> None:
        """Lets what is under way finish; it takes no longer than one call's time limit."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _nudge(self) -> None:
        while self._wanted:
            await asyncio.sleep(_GATHER_SECONDS)
            self._wanted = False
            try:
                await nudge(self._client)
            except Exception as fault:
                log.warning("pool_nudge_lost", reason=str(fault) or type(fault).__name__)
