"""A workflow whose only step fails. Apart from its test, so that the sandbox loads nothing else."""

import contextlib
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.exceptions import ActivityError, ApplicationError

from app.contracts.databases import DatabaseWorkflowInput


@activity.defn
async def fail_as() -> None:
    raise ApplicationError("as the test says", type="Told", non_retryable=True)


@workflow.defn
class FailAs:
    @workflow.run
    async def run(self, request: DatabaseWorkflowInput) -> None:
        workflow.logger.info("it begins")
        with contextlib.suppress(ActivityError):
            await workflow.execute_activity(fail_as, start_to_close_timeout=timedelta(seconds=30))
