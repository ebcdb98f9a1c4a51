"""Ends all access, keeps the data for the grace period, then destroys it."""

import contextlib
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError

from app.contracts.control import ControlActivities
from app.contracts.databases import ROW_CHANGED, DeleteDatabase, DeleteDatabaseInput
from app.contracts.engine import NOT_WANTED, EngineActivities
from app.contracts.queues import provision_workflow_id
from workflows.engine_steps import failure_type, record, remove_from_host, run_on_engine


@workflow.defn(name="DeleteDatabase")
class DeleteDatabaseWorkflow(DeleteDatabase):
    """The caller waits only until access has ended. Each step checks in the row that the deletion is still wanted."""

    def __init__(self) -> None:
        self._row_changed = False

    @workflow.signal(name=ROW_CHANGED)
    def row_changed(self) -> None:
        self._row_changed = True

    @workflow.run
    async def run(self, request: DeleteDatabaseInput) -> None:
        if request.cancel_provisioning:
            await self._cancel_provisioning(request)
        try:
            await self._delete(request)
        except FailureError as failure:
            if failure_type(failure) != NOT_WANTED:
                raise
            workflow.set_current_details("Undeleted; its data and credentials stay.")
            return
        workflow.set_current_details("Destroyed; nothing is left on the host.")

    async def _delete(self, request: DeleteDatabaseInput) -> None:
        action = f"end all access to database {request.database}"
        await run_on_engine(request, EngineActivities.revoke_access, request.database, action)
        await self._wait_out_grace(request)
        await remove_from_host(request)

    async def _cancel_provisioning(self, request: DeleteDatabaseInput) -> None:
        workflow.set_current_details("Cancelling the provisioning under way.")
        provisioning = workflow.get_external_workflow_handle(provision_workflow_id(request.database))
        try:
            await provisioning.cancel()
        except FailureError:
            # It has ended, or was never started. If it starts later, the row says that it is no longer wanted.
            workflow.logger.info("no provisioning to cancel")

    async def _wait_out_grace(self, request: DeleteDatabaseInput) -> None:
        """Waits until the row says that the period is over. The timer and the signal make it read the row again."""
        while True:
            self._row_changed = False
            action = "look until when the data is kept"
            grace = await record(ControlActivities.get_grace_period, request.database, action)
            if grace.remaining_seconds <= 0:
                return
            workflow.set_current_details(
                f"Access has ended. The data is kept until {grace.ends_at:%Y-%m-%d %H:%M:%S} UTC."
            )
            with contextlib.suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda: self._row_changed,
                    timeout=timedelta(seconds=grace.remaining_seconds),
                    timeout_summary="Grace period: the data is kept until its end",
                )
