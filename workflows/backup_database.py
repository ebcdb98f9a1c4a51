"""Takes one backup."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from app.contracts.backups import (
    BackupActivities,
    BackupDatabase,
    BackupDatabaseInput,
    BackupRecordActivities,
    BackupStatus,
)
from app.contracts.engine import NOT_WANTED
from app.contracts.retries import CANCEL
from workflows import policies
from workflows.engine_steps import failure_type, pause, reason, record

MOST_ROUNDS = 40
"""The most attempts, the later ones half a minute apart: what can't be done within twenty minutes is left to the next
backup."""


@workflow.defn(name="BackupDatabase")
class BackupDatabaseWorkflow(BackupDatabase):
    """The activity decides by the row; the workflow only tries again, and ends what nobody wants any more."""

    def __init__(self) -> None:
        self._cancelled = False

    @workflow.signal(name=CANCEL)
    def cancel(self) -> None:
        self._cancelled = True

    @workflow.run
    async def run(self, request: BackupDatabaseInput) -> None:
        taking = asyncio.ensure_future(self._take(request))
        await workflow.wait_condition(lambda: taking.done() or self._cancelled)
        if not taking.done():
            taking.cancel()
        try:
            status = await taking
        except (asyncio.CancelledError, ActivityError) as failure:
            if not self._cancelled and not (isinstance(failure, ActivityError) and failure_type(failure) == NOT_WANTED):
                raise
            workflow.set_current_details("It is over: cancelled, or nothing is left to be backed up.")
            return
        workflow.set_current_details(f"The backup is {status.value}.")

    async def _take(self, request: BackupDatabaseInput) -> BackupStatus:
        action = f"back up database {request.database}"
        policy = policies.backup(request.region, action, in_restore=request.in_restore)
        rounds = request.round
        while rounds < MOST_ROUNDS:
            workflow.set_current_details(f"About to {action}.")
            try:
                return await workflow.execute_activity_method(BackupActivities.take_backup, request.backup, **policy)
            except ActivityError as failure:
                if is_cancelled_exception(failure) or failure_type(failure) == NOT_WANTED:
                    raise
                rounds += 1
                workflow.set_current_details(f"Waiting to {action}. The last attempt failed: {reason(failure)}")
            if rounds < MOST_ROUNDS:
                await pause(rounds)
        action = "record that it can't be backed up"
        await record(BackupRecordActivities.give_up_backup, request.backup, action, local=False)
        return BackupStatus.FAILED
