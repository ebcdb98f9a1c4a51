"""Creates a database and verifies it by logging in, before it counts as active."""

import asyncio
from uuid import UUID

import msgspec
from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

from app.contracts.control import ControlActivities, HostFailure
from app.contracts.databases import Placement, ProvisionDatabase, ProvisionDatabaseInput
from app.contracts.engine import NAME_TAKEN, NOT_WANTED, EngineActivities
from app.contracts.restores import (
    NON_RETRYABLE,
    FillActivities,
    RestorationFailure,
    RestoreActivities,
    RestoreRecordActivities,
)
from workflows import policies
from workflows.engine_steps import (
    blames_host,
    engine_attempts,
    failure_type,
    pause,
    reason,
    record,
    remove_from_host,
    starting_details,
)


@workflow.defn(name="ProvisionDatabase")
class ProvisionDatabaseWorkflow(ProvisionDatabase):
    """Retries for as long as it takes, on another host if one fails. Cancelling it removes what it created."""

    @workflow.run
    async def run(self, request: ProvisionDatabaseInput) -> None:
        if request.cancelled:
            await self._undo(request)
            return
        try:
            await self._provision(request)
        except (asyncio.CancelledError, FailureError) as failure:
            if isinstance(failure, FailureError) and failure_type(failure) == NOT_WANTED:
                workflow.set_current_details("Deleted before it was active; the deletion cleans up.")
                return
            if isinstance(failure, FailureError) and failure_type(failure) in NON_RETRYABLE:
                await self._give_up(request, failure)
                return
            if not is_cancelled_exception(failure):
                raise
            await asyncio.shield(self._undo(msgspec.structs.replace(request, cancelled=True)))
            raise

    async def _provision(self, request: ProvisionDatabaseInput) -> None:
        placement, round_ = request.placement, request.round
        local, waited = round_ == 0, True
        workflow.set_current_details(starting_details(_action(placement), request.region))
        while True:
            try:
                await (
                    _create_locally(request, placement)
                    if local
                    else _create(request, placement, 0 if waited else round_)
                )
                if request.restoration is not None:
                    await _fill(request, request.restoration)
                break
            except FailureError as failure:
                if _is_the_end(failure) or failure_type(failure) in NON_RETRYABLE:
                    raise
                last = placement
                if not local or failure_type(failure) == NAME_TAKEN:
                    placement = await self._next_placement(request, placement, failure)
                    round_ = round_ + 1 if placement == last else 0
                workflow.set_current_details(_waiting(placement, last, failure))
                if workflow.info().is_continue_as_new_suggested():
                    workflow.continue_as_new(msgspec.structs.replace(request, placement=placement, round=round_))
                if not local and placement == last:
                    waited = await pause(round_)
                local = False
        workflow.set_current_details(f"Active on {placement.address}: proven by a login with its own credentials.")

    async def _next_placement(
        self, request: ProvisionDatabaseInput, placement: Placement, failure: FailureError
    ) -> Placement:
        """Another place if the host failed; the same if our own side did."""
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

    async def _give_up(self, request: ProvisionDatabaseInput, failure: FailureError) -> None:
        """Gives up a database that can't be filled: nothing is left of it."""
        assert request.restoration is not None, "only what is to be filled can fail"
        kind = failure_type(failure) or ""
        workflow.set_current_details(f"Can't be filled: {reason(failure)}. Removing what was made.")
        failed = RestorationFailure(restoration=request.restoration, kind=kind)
        await record(RestoreRecordActivities.fail_restoration, failed, "record that it failed", local=False)
        await remove_from_host(msgspec.structs.replace(request, cancelled=True), local=False)
        workflow.set_current_details(f"Failed: {reason(failure)}. Nothing is left of it.")

    async def _undo(self, request: ProvisionDatabaseInput) -> None:
        workflow.set_current_details("Cancelled; removing what was made so far.")
        await record(ControlActivities.abandon_provisioning, request.database, "record it as deleted", local=False)
        try:
            await remove_from_host(request, local=False)
        except FailureError as failure:
            if failure_type(failure) != NOT_WANTED:
                raise
            workflow.set_current_details("Cancelled when it was active already, or undeleted since: it stays.")
            return
        workflow.set_current_details("Cancelled; nothing is left of it.")


def _is_the_end(failure: FailureError) -> bool:
    """Whether the workflow was cancelled from outside, or is no longer wanted. A worker that shuts down cancels its
    local activities too, which doesn't count."""
    if is_cancelled_exception(failure):
        return workflow.cancellation_reason() is not None
    return failure_type(failure) == NOT_WANTED


async def _create_locally(request: ProvisionDatabaseInput, placement: Placement) -> None:
    policy = policies.local_create(_action(placement))
    await workflow.execute_local_activity_method(EngineActivities.create_database, request.database, **policy)


async def _create(request: ProvisionDatabaseInput, placement: Placement, round_: int) -> None:
    await engine_attempts(request, EngineActivities.create_database, request.database, _action(placement), round_)


async def _fill(request: ProvisionDatabaseInput, restoration: UUID) -> None:
    """Raises `ActivityError` when a round of attempts has failed."""
    action = f"fill database {request.database}, and compare it with its source"
    workflow.set_current_details(f"About to {action}.")
    await workflow.execute_activity_method(
        FillActivities.fill_database, restoration, **policies.transfer(request.region, action)
    )
    action = "let its tenant in, and log in to it"
    await engine_attempts(request, RestoreActivities.open_database, restoration, action, 0)


def _action(placement: Placement) -> str:
    return f"create the database on {placement.address} and log in to it as its tenant"


def _waiting(placement: Placement, last: Placement, failure: FailureError) -> str:
    if placement == last:
        return f"Waiting to {_action(placement)}. The last attempt failed: {reason(failure)}"
    return f"Moved from {last.address}: {reason(failure)}. About to {_action(placement)}."
