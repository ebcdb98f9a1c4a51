"""Enforces plans: storage, and hours of use."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from app.contracts.quotas import EnforceQuotas, MeasureRegion, QuotaActivities, QuotaHostActivities, RegionMeasurement
from workflows import policies
from workflows.engine_steps import reason, starting_details


@workflow.defn(name="EnforceQuotas")
class EnforceQuotasWorkflow(EnforceQuotas):
    """Handles the regions concurrently. A region that no worker serves is left to the next run, and delays no other."""

    def __init__(self) -> None:
        self._lines: dict[str, str] = {}

    @workflow.run
    async def run(self) -> None:
        try:
            regions = await self._begin()
        except ActivityError as failure:
            if is_cancelled_exception(failure):
                raise
            workflow.set_current_details(f"Left to the next run: {reason(failure)}")
            return
        at = workflow.now()
        await asyncio.gather(*(self._enforce(MeasureRegion(region=region, at=at)) for region in regions))

    async def _begin(self) -> list[str]:
        """Applies changed plans to databases; returns the regions."""
        followed = await workflow.execute_activity_method(
            QuotaActivities.follow_plans, **policies.upkeep("bring databases to plans that were changed")
        )
        if followed:
            self._report("plans", f"{followed} databases get another connection limit")
        return await workflow.execute_activity_method(
            QuotaActivities.list_regions, **policies.upkeep("look which regions there are")
        )

    async def _enforce(self, request: MeasureRegion) -> None:
        action = f"measure the databases in {request.region}"
        self._report(request.region, starting_details(action, request.region))
        try:
            measured = await workflow.execute_activity_method(
                QuotaHostActivities.measure_region, request, **policies.attempt(request.region, action)
            )
            self._report(request.region, _summary(measured))
        except ActivityError as failure:
            if is_cancelled_exception(failure):
                raise
            self._report(request.region, f"left to the next run: {reason(failure)}")

    def _report(self, region: str, sentence: str) -> None:
        self._lines[region] = f"{region}: {sentence}"
        workflow.set_current_details("\n\n".join(self._lines[name] for name in sorted(self._lines)))


def _summary(measured: RegionMeasurement) -> str:
    moves = [f"{count} {name.replace('_', ' for ')}" for name, count in measured.moves.items()]
    unreachable = [f"not measured: {', '.join(measured.unreachable)}"] if measured.unreachable else []
    return "; ".join([f"{measured.databases} databases measured", *moves, *unreachable])
