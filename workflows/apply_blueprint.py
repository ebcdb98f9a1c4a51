"""Applies a blueprint to a database."""

import asyncio

import msgspec
from temporalio import workflow
from temporalio.exceptions import ActivityError, FailureError, is_cancelled_exception

from app.contracts.applications import (
    APPLY_LIMIT,
    ApplicationActivities,
    ApplicationResult,
    ApplicationStatus,
    ApplyBlueprint,
    ApplyBlueprintInput,
)
from app.contracts.engine import NOT_WANTED
from app.contracts.retries import CANCEL
from workflows.engine_steps import failure_type, run_on_engine


@workflow.defn(name="ApplyBlueprint")
class ApplyBlueprintWorkflow(ApplyBlueprint):
    """Retries until the host is available. Cancelling it still records the truth: what was committed by then counts."""

    def __init__(self) -> None:
        self._cancelled = False

    @workflow.signal(name=CANCEL)
    def cancel(self) -> None:
        self._cancelled = True

    @workflow.run
    async def run(self, request: ApplyBlueprintInput) -> None:
        if request.cancelled:
            await self._abandon(request)
            return
        try:
            applied = await self._apply(request)
        except (asyncio.CancelledError, FailureError) as failure:
            if isinstance(failure, ActivityError) and failure_type(failure) == NOT_WANTED:
                workflow.set_current_details("There is no such application; nothing was done.")
                return
            if not is_cancelled_exception(failure):
                raise
            await asyncio.shield(self._abandon(msgspec.structs.replace(request, cancelled=True)))
            if self._cancelled:
                return
            raise
        workflow.set_current_details(_summary(applied))

    async def _apply(self, request: ApplyBlueprintInput) -> ApplicationResult:
        """Applies the blueprint until the application has ended, or is cancelled by its signal or from outside."""
        action = f"apply blueprint application {request.application} to database {request.database}"
        step = ApplicationActivities.apply_blueprint
        applying = asyncio.ensure_future(
            run_on_engine(request, step, request.application, action, time_limit=APPLY_LIMIT)
        )
        try:
            await workflow.wait_condition(lambda: applying.done() or self._cancelled)
        except asyncio.CancelledError:
            applying.cancel()
            await applying
            raise
        if not applying.done():
            applying.cancel()
        return await applying

    async def _abandon(self, request: ApplyBlueprintInput) -> None:
        action = f"find out how far blueprint application {request.application} came"
        applied = await run_on_engine(request, ApplicationActivities.abandon_application, request.application, action)
        workflow.set_current_details(f"Cancelled. {_summary(applied)}")


def _summary(applied: ApplicationResult) -> str:
    counted = f"{applied.statements_succeeded} of {applied.statements_total} statements succeeded"
    return {
        ApplicationStatus.COMPLETED: f"Completed: {counted}.",
        ApplicationStatus.ROLLED_BACK: f"Dry run: {counted}, and nothing of them is left.",
    }.get(applied.status, f"Failed: {counted}. The application's record says why, and what stays.")
