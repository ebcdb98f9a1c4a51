"""Refills the warm pools soon after a claim, without a workflow for that: the rows say what is missing, and each member
is made by its own workflow. `RefillPool` does the same on its schedule, also for notices that were lost."""

import asyncio

from app.core.clock import utc_now
from app.databases.pool.claim import CHANNEL
from app.databases.pool.refill import refill
from app.store.notify import work_on_notices
from workers.queues import WorkerDependencies

_PAUSE_SECONDS = 0.5
"""The pause until more members can be begun."""
_PROBE_SECONDS = 60.0


async def refill_claimed(tools: WorkerDependencies) -> None:
    """Runs until cancelled. Any number may run concurrently: one at a time looks at a pool."""
    dsn = tools.settings.control_dsn
    assert dsn is not None

    async def look() -> bool:
        found = await refill(tools.plans, tools.box, tools.settings, utc_now())
        if found.retry_soon:
            await asyncio.sleep(_PAUSE_SECONDS)
        return found.retry_soon

    await work_on_notices(
        dsn, CHANNEL, look, poll=_leave, failure="pool_refill_waiting", fallback_seconds=_PROBE_SECONDS
    )


async def _leave() -> bool:
    """Does nothing where nothing was claimed: the rest is for the schedule."""
    return False
