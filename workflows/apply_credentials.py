"""Applies a change of a database's credentials or users on its engine."""

from temporalio import workflow
from temporalio.exceptions import ActivityError

from app.contracts.credentials import ApplyCredentials, ApplyCredentialsInput, CredentialActivities
from app.contracts.engine import NOT_WANTED
from workflows.engine_steps import failure_type, run_on_engine


@workflow.defn(name="ApplyCredentials")
class ApplyCredentialsWorkflow(ApplyCredentials):
    """Applies the newest state, whichever change started it, so that late runs do no harm."""

    @workflow.run
    async def run(self, request: ApplyCredentialsInput) -> None:
        action = f"bring the logins of database {request.database} to what is recorded"
        try:
            state = await run_on_engine(request, CredentialActivities.apply_credentials, request.database, action)
        except ActivityError as failure:
            if failure_type(failure) != NOT_WANTED:
                raise
            workflow.set_current_details("Nothing is left of the database; neither are its logins.")
            return
        workflow.set_current_details(f"In force: {state}.")
