"""Makes a database, proves it by logging in, and only then calls it active."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, FailureError, is_cancelled_exception

from app.contracts.control import ControlActivities, HostFailure
from app.contracts.databases import Placement, ProvisionDatabase, ProvisionDatabaseInput
from app.contracts.engine import NAME_TAKEN, NOT_WANTED, EngineActivities
from workflows import policies
from workflows.engine_steps import (
    about_to,
    blames_host,
    engine_attempts,
    failure_type,
    reason,
    record,
    remove_from_host,
)


@workflow.defn(name="ProvisionDatabase")
class ProvisionDatabaseWorkflow(ProvisionDatabase):
    """Retries for as long as it takes, on another host where one is sick. Cancelling it undoes what it made."""

    @workflow.run
    async def run(self, request: ProvisionDatabaseInput) -> None:
        try:
            await self._provision(request)
        except (asyncio.CancelledError, FailureError) as failure:
            if isinstance(failure, FailureError) and failure_type(failure) == NOT_WANTED:
                workflow.set_current_details("Deleted before it was active; the deletion cleans up.")
                return
            if not is_cancelled_exception(failure):
                raise
            await asyncio.shield(self._undo(request))
            raise

    async def _provision(self, request: ProvisionDatabaseInput) -> None:
        placement = request.placement
        workflow.set_current_details(about_to(_doing(placement), request.region))
        round_ = 0
        while True:
            try:
                await engine_attempts(
                    request, EngineActivities.create_database, request.database, _doing(placement), round_
                )
                break
            except ActivityError as failure:
                if is_cancelled_exception(failure) or failure_type(failure) == NOT_WANTED:
                    raise
                last, placement = placement, await self._next_placement(request, placement, failure)
                round_ = round_ + 1 if placement == last else 0
                workflow.set_current_details(_waiting(placement, last, failure))
        workflow.set_current_details(f"Active on {placement.address}: proven by a login with its own credentials.")

    async def _next_placement(
        self, request: ProvisionDatabaseInput, placement: Placement, failure: ActivityError
    ) -> Placement:
        """Another one where the host is to blame; the same where our own side failed."""
        if not blames_host(failure):
            return placement
        return await workflow.execute_activity_method(
            ControlActivities.replace_host,
            HostFailure(
                database=request.database,
                placement=placement,
                name_taken=failure_type(failure) == NAME_TAKEN,
                reason=reason(failure),
            ),
            **policies.control("look for another place"),
        )

    async def _undo(self, request: ProvisionDatabaseInput) -> None:
        workflow.set_current_details("Cancelled; removing what was made so far.")
        await record(ControlActivities.abandon_provisioning, request.database, "record it as deleted")
        await remove_from_host(request)
        workflow.set_current_details("Cancelled; nothing is left of it.")


def _doing(placement: Placement) -> str:
    return f"create the database on {placement.address} and log in to it as its tenant"


def _waiting(placement: Placement, last: Placement, failure: ActivityError) -> str:
    if placement == last:
        return f"Waiting to {_doing(placement)}. The last attempt failed: {reason(failure)}"
    return f"Moved from {last.address}: {reason(failure)}. About to {_doing(placement)}."
