"""Makes a database, proves it by logging in, and only then calls it active."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception
from temporalio.workflow import ParentClosePolicy

from app.contracts.control import ControlActivities, HostFailure, Replacement
from app.contracts.databases import (
    ProvisionDatabase,
    ProvisionDatabaseInput,
    RemoveRemnant,
    RemoveRemnantInput,
)
from app.contracts.engine import NAME_TAKEN, NOT_WANTED, EngineActivities
from app.contracts.queues import remnant_workflow_id
from workflows import policies
from workflows.engine_steps import engine_attempts, failure_type, reason, record, remove_from_host


@workflow.defn(name="ProvisionDatabase")
class ProvisionDatabaseWorkflow(ProvisionDatabase):
    """Retries for as long as it takes, on another host where one is sick. Cancelling it undoes what it made."""

    @workflow.run
    async def run(self, request: ProvisionDatabaseInput) -> None:
        try:
            await self._provision(request)
        except (asyncio.CancelledError, ActivityError) as failure:
            if isinstance(failure, ActivityError) and failure_type(failure) == NOT_WANTED:
                workflow.set_current_details("Deleted before it was active; the deletion cleans up.")
                return
            if not is_cancelled_exception(failure):
                raise
            await asyncio.shield(self._undo(request))
            raise

    async def _provision(self, request: ProvisionDatabaseInput) -> None:
        address = request.address
        round_ = 0
        while True:
            try:
                await self._make(request, address, round_)
                break
            except ActivityError as failure:
                if is_cancelled_exception(failure) or failure_type(failure) == NOT_WANTED:
                    raise
                replacement = await self._replace_host(request, failure)
                round_ = round_ + 1 if replacement.address == address else 0
                address = replacement.address
                workflow.set_current_details(
                    f"Waiting for engine host {address}. The last attempt failed: {reason(failure)}"
                )
        workflow.set_current_details("Proven by a login with its own credentials; recording it as active.")
        await record(ControlActivities.activate_database, request.database)
        workflow.set_current_details(f"Active on {address}.")

    async def _make(self, request: ProvisionDatabaseInput, address: str, round_: int) -> None:
        database = request.database
        await engine_attempts(
            request, EngineActivities.create_database, database, f"create the database on {address}", round_
        )
        await engine_attempts(
            request, EngineActivities.verify_login, database, f"log in to it on {address} as its tenant", round_
        )

    async def _replace_host(self, request: ProvisionDatabaseInput, failure: ActivityError) -> Replacement:
        replacement = await workflow.execute_activity_method(
            ControlActivities.replace_host,
            HostFailure(
                database=request.database,
                name_taken=failure_type(failure) == NAME_TAKEN,
                reason=reason(failure),
            ),
            **policies.control(),
        )
        if replacement.remnant_host_id is not None:
            await workflow.start_child_workflow(
                RemoveRemnant.run,
                RemoveRemnantInput(
                    database=request.database,
                    engine=request.engine,
                    region=request.region,
                    team_id=request.team_id,
                    host_id=replacement.remnant_host_id,
                    name=replacement.remnant_name,
                ),
                id=remnant_workflow_id(request.database, replacement.remnant_host_id),
                parent_close_policy=ParentClosePolicy.ABANDON,
                search_attributes=workflow.info().typed_search_attributes,
                static_summary=f"Left on host {replacement.remnant_host_id} by database {request.database}",
            )
        return replacement

    async def _undo(self, request: ProvisionDatabaseInput) -> None:
        workflow.set_current_details("Cancelled; removing what was made so far.")
        await record(ControlActivities.abandon_provisioning, request.database)
        await remove_from_host(request)
        workflow.set_current_details("Cancelled; nothing is left of it.")
