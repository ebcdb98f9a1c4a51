"""Proves one backup by restoring it."""

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from app.contracts.backups import BackupRecordActivities, ProofActivities, ProveBackup, ProveBackupInput
from app.contracts.engine import NOT_WANTED
from workflows import policies
from workflows.engine_steps import failure_type, pause, reason, record

MOST_ROUNDS = 12
"""The most attempts, the later ones half a minute apart. A test that can't be run says so, and the next one comes by
itself."""


@workflow.defn(name="ProveBackup")
class ProveBackupWorkflow(ProveBackup):
    """The activity decides by the row; the workflow only tries again."""

    @workflow.run
    async def run(self, request: ProveBackupInput) -> None:
        action = f"restore backup {request.backup} and compare it"
        policy = policies.backup(request.region, action)
        rounds = request.round
        while rounds < MOST_ROUNDS:
            workflow.set_current_details(f"About to {action}.")
            try:
                status = await workflow.execute_activity_method(ProofActivities.prove_backup, request, **policy)
            except ActivityError as failure:
                if is_cancelled_exception(failure):
                    raise
                if failure_type(failure) == NOT_WANTED:
                    workflow.set_current_details("It is over: it has ended, or the backup is gone.")
                    return
                rounds += 1
                workflow.set_current_details(f"Waiting to {action}. The last attempt failed: {reason(failure)}")
            else:
                workflow.set_current_details(f"The proof is {status.value}.")
                return
            if rounds < MOST_ROUNDS:
                await pause(rounds)
        await record(BackupRecordActivities.give_up_proof, request, "record that the test can't be run", local=False)
        workflow.set_current_details("The test could not be run; its record says why.")
