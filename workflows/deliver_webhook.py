"""Ends deliveries that version 0.1.0 began in a workflow: its activity hands them over to `workers.deliveries`."""

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


# A run of an earlier version can't be continued, and needn't be: its delivery waits as a row, or is recovered by
# `Reconcile`.
@workflow.defn(name="DeliverWebhook", failure_exception_types=[workflow.NondeterminismError])
class DeliverWebhookWorkflow(DeliverWebhook):
    """Runs as it did, so that what is open during an upgrade continues; nothing starts it any more."""

    @workflow.run
    async def run(self, request: DeliverWebhookInput) -> None:
        outcome = await self._attempt_locally(request) or await self._attempt(request)
        workflow.set_current_details(_ending(outcome))

    async def _attempt_locally(self, request: DeliverWebhookInput) -> AttemptOutcome | None:
        try:
            return await workflow.execute_local_activity_method(
                WebhookActivities.attempt_delivery, _first(request), **policies.local_webhook(request.endpoint)
            )
        except FailureError as failure:
            if is_cancelled_exception(failure):
                raise
            return None

    async def _attempt(self, request: DeliverWebhookInput) -> AttemptOutcome:
        """Retries while our own side fails."""
        round_ = 0
        while True:
            try:
                return await workflow.execute_activity_method(
                    WebhookActivities.attempt_delivery, _first(request), **policies.webhook(request.endpoint, round_)
                )
            except ActivityError as failure:
                if is_cancelled_exception(failure):
                    raise
                round_ += 1
                workflow.set_current_details(
                    f"Waiting to send attempt 1. The last try failed on our side: {reason(failure)}"
                )


def _first(request: DeliverWebhookInput) -> AttemptRef:
    return AttemptRef(delivery=request.delivery, round=request.round)


def _ending(outcome: AttemptOutcome) -> str:
    if outcome.status is DeliveryStatus.DELIVERED:
        return f"Delivered with attempt {outcome.spent}."
    if outcome.status is DeliveryStatus.FAILED:
        return f"Not delivered after {outcome.spent} attempts. {outcome.words}"
    if not outcome.spent:
        return outcome.words
    return f"{outcome.words} Attempt {outcome.spent + 1} follows in {outcome.wait_seconds:.0f} s; until then it waits."
