"""Applies changed limits on the engine."""

from temporalio import workflow
from temporalio.exceptions import ActivityError

from app.contracts.control import ControlActivities, LimitsApplied
from app.contracts.databases import ApplyLimits, ApplyLimitsInput
from app.contracts.engine import NOT_WANTED, EngineActivities
from workflows.engine_steps import failure_type, record, run_on_engine


@workflow.defn(name="ApplyLimits")
class ApplyLimitsWorkflow(ApplyLimits):
    """Applies the newest limits, whichever change started it, so that late runs do no harm."""

    @workflow.run
    async def run(self, request: ApplyLimitsInput) -> None:
        action = f"put the new limits of database {request.database} in force"
        try:
            revision = await run_on_engine(request, EngineActivities.apply_limits, request.database, action)
        except ActivityError as failure:
            if failure_type(failure) != NOT_WANTED:
                raise
            workflow.set_current_details("The database is deleted; there is nothing to limit.")
            return
        applied = LimitsApplied(database=request.database, revision=revision)
        await record(ControlActivities.record_limits_applied, applied, "record that they are in force")
        workflow.set_current_details("In force.")
