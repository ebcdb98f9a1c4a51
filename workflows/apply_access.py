"""Applies a pause, a resumption, a freeze or a thaw on the engine."""

from temporalio import workflow
from temporalio.exceptions import ActivityError

from app.contracts.databases import ApplyAccess, ApplyAccessInput
from app.contracts.engine import NOT_WANTED, EngineActivities
from workflows.engine_steps import failure_type, run_on_engine


@workflow.defn(name="ApplyAccess")
class ApplyAccessWorkflow(ApplyAccess):
    """Applies the newest state, whichever change started it, so that late runs do no harm."""

    @workflow.run
    async def run(self, request: ApplyAccessInput) -> None:
        action = f"bring the access to database {request.database} to what is recorded"
        try:
            state = await run_on_engine(request, EngineActivities.apply_access, request.database, action)
        except ActivityError as failure:
            if failure_type(failure) != NOT_WANTED:
                raise
            workflow.set_current_details("The database is deleted; its deletion ends all access.")
            return
        workflow.set_current_details(f"In force: {state}.")
