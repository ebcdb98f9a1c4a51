"""Ends all access at once, keeps the data through the grace period, then destroys it."""

from temporalio import workflow
from temporalio.exceptions import FailureError

from app.contracts.control import ControlActivities
from app.contracts.databases import DeleteDatabase, DeleteDatabaseInput
from app.contracts.engine import EngineActivities
from app.contracts.queues import provision_workflow_id
from workflows.engine_steps import on_engine, record, remove_from_host


@workflow.defn(name="DeleteDatabase")
class DeleteDatabaseWorkflow(DeleteDatabase):
    """The one who asked waits only until access has ended."""

    @workflow.run
    async def run(self, request: DeleteDatabaseInput) -> None:
        if request.cancel_provisioning:
            await self._cancel_provisioning(request)
        doing = f"end all access to database {request.database}"
        await on_engine(request, EngineActivities.revoke_access, request.database, doing)
        await record(ControlActivities.record_revoked, request.database, "record that access has ended")
        await self._wait_out_grace(request)
        await remove_from_host(request)
        workflow.set_current_details("Destroyed; nothing is left on the host.")

    async def _cancel_provisioning(self, request: DeleteDatabaseInput) -> None:
        workflow.set_current_details("Cancelling the provisioning under way.")
        provisioning = workflow.get_external_workflow_handle(provision_workflow_id(request.database))
        try:
            await provisioning.cancel()
        except FailureError:
            # It has ended, or was never started. If it starts later, the row tells it that it isn't wanted.
            workflow.logger.info("no provisioning to cancel")

    async def _wait_out_grace(self, request: DeleteDatabaseInput) -> None:
        remaining = request.destroy_at - workflow.now()
        if remaining.total_seconds() <= 0:
            return
        workflow.set_current_details(
            f"Access has ended. The data is kept until {request.destroy_at:%Y-%m-%d %H:%M:%S} UTC."
        )
        await workflow.sleep(remaining, summary="Grace period: the data is kept until its end")
