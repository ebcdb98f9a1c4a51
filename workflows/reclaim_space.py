"""Returns the space of deleted rows in frozen databases to the disk."""

import asyncio
from collections import defaultdict
from uuid import UUID

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from app.contracts.quotas import QuotaActivities, QuotaHostActivities, ReclaimSpace
from workflows import policies
from workflows.engine_steps import reason

_CONCURRENCY = 4
"""The maximum of concurrent databases in one region."""


@workflow.defn(name="ReclaimSpace")
class ReclaimSpaceWorkflow(ReclaimSpace):
    """Handles each database by itself: one whose tenant locks its tables delays no other, and is tried last in the
    next run."""

    def __init__(self) -> None:
        self._done: dict[str, int] = defaultdict(int)
        self._left: dict[str, dict[UUID, str]] = defaultdict(dict)

    @workflow.run
    async def run(self) -> None:
        try:
            frozen = await workflow.execute_activity_method(
                QuotaActivities.list_frozen, **policies.upkeep("look which databases are frozen")
            )
        except ActivityError as failure:
            if is_cancelled_exception(failure):
                raise
            workflow.set_current_details(f"Left to the next run: {reason(failure)}")
            return
        by_region: dict[str, list[UUID]] = defaultdict(list)
        for one in frozen:
            by_region[one.region].append(one.database)
        self._report()
        await asyncio.gather(*(self._reclaim(region, databases) for region, databases in sorted(by_region.items())))

    async def _reclaim(self, region: str, databases: list[UUID]) -> None:
        turns = asyncio.Semaphore(_CONCURRENCY)

        async def one(database: UUID) -> None:
            action = f"give back the space that deletions left in database {database}"
            async with turns:
                try:
                    await workflow.execute_activity_method(
                        QuotaHostActivities.reclaim_space, database, **policies.attempt(region, action)
                    )
                    self._done[region] += 1
                except ActivityError as failure:
                    if is_cancelled_exception(failure):
                        raise
                    self._left[region][database] = reason(failure)
            self._report()

        await asyncio.gather(*map(one, databases))

    def _report(self) -> None:
        lines = [f"{region}: {count} databases looked at" for region, count in sorted(self._done.items())]
        lines += [
            f"{region}: database {database} is left to another run: {why}"
            for region, failed in sorted(self._left.items())
            for database, why in sorted(failed.items())
        ]
        workflow.set_current_details("\n\n".join(lines) or "No frozen database has been looked at")
