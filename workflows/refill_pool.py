"""Fills the warm pools to their size, and verifies the databases in them."""

import contextlib
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from app.contracts.pool import PoolActivities, PoolHostActivities, RefillPool
from workflows import policies
from workflows.engine_steps import reason, starting_details

_MAX_PASSES = 120
"""A limit, so that a run and its history end; the next scheduled run continues."""
_PAUSE = timedelta(seconds=0.5)


@workflow.defn(name="RefillPool")
class RefillPoolWorkflow(RefillPool):
    """Only starts members: each is created by its own workflow. Ends when none is missing."""

    def __init__(self) -> None:
        self._nudged = False

    @workflow.signal(name="nudge")
    def nudge(self) -> None:
        self._nudged = True

    @workflow.run
    async def run(self) -> None:
        try:
            await self._verify()
            await self._refill()
        except ActivityError as failure:
            if is_cancelled_exception(failure):
                raise
            workflow.set_current_details(f"Left to the next run: {reason(failure)}")

    async def _refill(self) -> None:
        for _ in range(_MAX_PASSES):
            self._nudged = False
            result = await workflow.execute_activity_method(
                PoolActivities.refill_pool, workflow.now(), **policies.upkeep("look at every pool")
            )
            workflow.set_current_details(result.summary)
            if result.retry_soon:
                await self._pause()
            elif not self._nudged:
                return

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            await workflow.wait_condition(lambda: self._nudged, timeout=_PAUSE, timeout_summary="More in a moment")

    async def _verify(self) -> None:
        """Verifies members, region by region. A region that no worker serves, or whose host is slow, is left to the
        next run."""
        untried = await workflow.execute_activity_method(
            PoolActivities.find_unverified, workflow.now(), **policies.upkeep("find databases to try again")
        )
        for request in untried:
            action = f"log in to databases of the pool in {request.region}"
            workflow.set_current_details(starting_details(action, request.region))
            try:
                await workflow.execute_activity_method(
                    PoolHostActivities.verify_members, request, **policies.attempt(request.region, action)
                )
            except ActivityError as failure:
                if is_cancelled_exception(failure):
                    raise
                workflow.logger.info("not verified in %s: %s", request.region, reason(failure))
