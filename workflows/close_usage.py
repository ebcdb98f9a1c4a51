"""Closes the periods of the ledger of usage."""

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from app.contracts.usage import CloseUsage, UsageActivities
from workflows import policies
from workflows.engine_steps import reason


@workflow.defn(name="CloseUsage")
class CloseUsageWorkflow(CloseUsage):
    """What can't be closed is left to the next run: nothing is lost meanwhile."""

    @workflow.run
    async def run(self) -> None:
        try:
            closed = await workflow.execute_activity_method(
                UsageActivities.close_usage, **policies.upkeep("close the periods that are over")
            )
        except ActivityError as failure:
            if is_cancelled_exception(failure):
                raise
            workflow.set_current_details(f"Left to the next run: {reason(failure)}")
            return
        if closed.through is None:
            workflow.set_current_details("No period could be closed.")
        else:
            workflow.set_current_details(f"Closed through {closed.through.isoformat()}, {closed.rows} rows.")
