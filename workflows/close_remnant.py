"""Ends access to what a moved database left on its lost host."""

from temporalio import workflow

from app.contracts.databases import CloseRemnant, RemoveRemnantInput
from app.contracts.engine import DESTRUCTION_LIMIT, EngineActivities, RemnantRef
from workflows.engine_steps import run_on_engine


@workflow.defn(name="CloseRemnant")
class CloseRemnantWorkflow(CloseRemnant):
    """Retries until the host is available. It is no form of `RemoveRemnant`: a worker of a version that doesn't know
    what is to be kept would remove it."""

    @workflow.run
    async def run(self, request: RemoveRemnantInput) -> None:
        remnant = RemnantRef(database=request.database, host_id=request.host_id, name=request.name)
        action = f"close what database {request.database} left on host {request.host_id}"
        step = EngineActivities.close_remnant
        await run_on_engine(request, step, remnant, action, urgent=False, time_limit=DESTRUCTION_LIMIT)
        workflow.set_current_details("Closed; its data stays.")
