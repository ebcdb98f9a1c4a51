"""Delivers one event to one endpoint, attempt after attempt."""

from typing import NoReturn

from temporalio import workflow
from temporalio.exceptions import ActivityError, FailureError, is_cancelled_exception

from app.contracts.webhooks import (
    AttemptOutcome,
    AttemptRef,
    DeliverWebhook,
    DeliverWebhookInput,
    DeliveryStatus,
    WebhookActivities,
)
from workflows import policies
from workflows.engine_steps import reason


@workflow.defn(name="DeliverWebhook")
class DeliverWebhookWorkflow(DeliverWebhook):
    """Waits here, where waiting costs nothing. Each attempt says itself when the next is due, if there is to be one."""

    def __init__(self) -> None:
        self._unwanted = False

    @workflow.run
    async def run(self, request: DeliverWebhookInput) -> None:
        if request.supersedes is not None:
            await self._end(request.supersedes)
        spent, wait = request.spent, request.wait_seconds
        at_hand = wait == 0 and spent == 0
        while True:
            if wait > 0:
                await self._wait(wait, spent)
            outcome = await (self._attempt_at_hand(request) if at_hand else self._attempt(request, spent))
            at_hand = False
            spent, wait = outcome.spent, outcome.wait_seconds
            if outcome.status is not DeliveryStatus.PENDING:
                workflow.set_current_details(_ending(outcome))
                return
            if wait > 0:
                workflow.set_current_details(f"{outcome.words} Attempt {spent + 1} follows in {wait:.0f} s.")
            if workflow.info().is_continue_as_new_suggested():
                _continue(request, spent, wait)

    @workflow.signal(name="end")
    def end(self) -> None:
        """Nobody wants it any more. The next attempt finds that out, so it needn't be waited for."""
        self._unwanted = True

    async def _end(self, superseded: str) -> None:
        try:
            await workflow.get_external_workflow_handle(superseded).signal("end")
        except FailureError:
            workflow.logger.info("the round before has ended")

    async def _wait(self, seconds: float, spent: int) -> None:
        try:
            await workflow.wait_condition(
                lambda: self._unwanted, timeout=seconds, timeout_summary=f"Until attempt {spent + 1} is due"
            )
        except TimeoutError:
            return
        # Heard once: should it be wanted all the same, it waits again.
        self._unwanted = False

    async def _attempt_at_hand(self, request: DeliverWebhookInput) -> AttemptOutcome:
        attempt = AttemptRef(delivery=request.delivery, round=request.round, spent=0, at_hand=True)
        try:
            return await workflow.execute_local_activity_method(
                WebhookActivities.attempt_delivery, attempt, **policies.webhook_at_hand(request.endpoint)
            )
        except FailureError as failure:
            if is_cancelled_exception(failure):
                raise
            return AttemptOutcome(status=DeliveryStatus.PENDING, spent=0)

    async def _attempt(self, request: DeliverWebhookInput, spent: int) -> AttemptOutcome:
        attempt = AttemptRef(delivery=request.delivery, round=request.round, spent=spent)
        round_ = 0
        while True:
            try:
                return await workflow.execute_activity_method(
                    WebhookActivities.attempt_delivery, attempt, **policies.webhook(request.endpoint, spent, round_)
                )
            except ActivityError as failure:
                if is_cancelled_exception(failure):
                    raise
                round_ += 1
                workflow.set_current_details(
                    f"Waiting to send attempt {spent + 1}. The last try failed on our side: {reason(failure)}"
                )
                if workflow.info().is_continue_as_new_suggested():
                    _continue(request, spent, 0)


def _continue(request: DeliverWebhookInput, spent: int, wait: float) -> NoReturn:
    workflow.continue_as_new(
        DeliverWebhookInput(
            delivery=request.delivery,
            endpoint=request.endpoint,
            team_id=request.team_id,
            event=request.event,
            database=request.database,
            round=request.round,
            spent=spent,
            wait_seconds=wait,
        )
    )


def _ending(outcome: AttemptOutcome) -> str:
    if outcome.status is DeliveryStatus.DELIVERED:
        return f"Delivered with attempt {outcome.spent}."
    return f"Not delivered after {outcome.spent} attempts. {outcome.words}"
