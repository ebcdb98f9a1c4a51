"""Gives a database the data of a backup: in place, or on another host after its own was lost."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import FailureError

from app.contracts.engine import NOT_WANTED
from app.contracts.restores import (
    NON_RETRYABLE,
    FillActivities,
    RestorationFailure,
    RestorationKind,
    RestoreActivities,
    RestoreDatabase,
    RestoreDatabaseInput,
    RestoreRecordActivities,
)
from app.contracts.retries import CANCEL
from workflows.engine_steps import failure_type, pause, reason, record, run_on_engine, run_transfer


@workflow.defn(name="RestoreDatabase")
class RestoreDatabaseWorkflow(RestoreDatabase):
    """The rows decide: each step finds what was done before. The signal `CANCEL` ends a step whose restoration has
    ended."""

    def __init__(self) -> None:
        self._cancelled = False
        self._kind: RestorationKind | None = None

    @workflow.signal(name=CANCEL)
    def cancel(self) -> None:
        self._cancelled = True

    @workflow.run
    async def run(self, request: RestoreDatabaseInput) -> None:
        restoring = asyncio.ensure_future(self._restore(request))
        await workflow.wait_condition(lambda: restoring.done() or self._cancelled)
        if not restoring.done():
            restoring.cancel()
        said = "Restored: whole, compared, and open to its tenant."
        try:
            await restoring
        except (asyncio.CancelledError, FailureError) as failure:
            kind = failure_type(failure) if isinstance(failure, FailureError) else None
            if kind in NON_RETRYABLE and isinstance(failure, FailureError):
                failed = RestorationFailure(restoration=request.restoration, kind=kind or "")
                await record(RestoreRecordActivities.fail_restoration, failed, "record that it failed")
                moved = self._kind is RestorationKind.MOVE
                left = "The database stays closed" if moved else "The data is what it was before"
                said = f"Failed: {reason(failure)}. {left}."
            elif self._cancelled or kind == NOT_WANTED:
                said = "Ended before it was done: cancelled, or its database was deleted, or goes to another host."
            else:
                raise
        await record(RestoreRecordActivities.end_scratch, request.restoration, "give up the scratch database")
        workflow.set_current_details(said)

    async def _restore(self, request: RestoreDatabaseInput) -> None:
        about, uuid = f"database {request.database}", request.restoration
        self._kind = await run_on_engine(
            request, RestoreActivities.prepare_restoration, uuid, f"make what the backup of {about} is loaded into"
        )
        await run_transfer(request, FillActivities.fill_database, uuid, "load the backup, and compare it")
        if self._kind is RestorationKind.IN_PLACE:
            await run_on_engine(request, RestoreActivities.close_database, uuid, f"end all access to {about}")
            await self._back_up(request)
            await run_transfer(request, FillActivities.exchange_data, uuid, f"give {about} the backup's data")
        await run_on_engine(request, RestoreActivities.open_database, uuid, f"let the tenant of {about} in")

    async def _back_up(self, request: RestoreDatabaseInput) -> None:
        """Has the data backed up first, and waits until the backup's row says that it is there."""
        action, looks = "have what there is backed up first", 0
        workflow.set_current_details(f"Waiting to {action}.")
        while not await record(RestoreRecordActivities.back_up_first, request.restoration, action):
            looks += 1
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(request)
            await pause(min(looks, 3))
