"""Removes what a failed attempt left on an abandoned host."""

from temporalio import workflow

from app.contracts.databases import RemoveRemnant, RemoveRemnantInput
from app.contracts.engine import DESTRUCTION_LIMIT, EngineActivities, RemnantRef
from workflows.engine_steps import run_on_engine


@workflow.defn(name="RemoveRemnant")
class RemoveRemnantWorkflow(RemoveRemnant):
    """Retries until the host is available: remnants that nobody owns would stay for ever."""

    @workflow.run
    async def run(self, request: RemoveRemnantInput) -> None:
        remnant = RemnantRef(database=request.database, host_id=request.host_id, name=request.name)
        action = f"remove what database {request.database} left on host {request.host_id}"
        step = EngineActivities.remove_remnant
        await run_on_engine(request, step, remnant, action, urgent=False, time_limit=DESTRUCTION_LIMIT)
        workflow.set_current_details("Removed.")
