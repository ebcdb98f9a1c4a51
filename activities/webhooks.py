"""Deliveries to webhook endpoints: outgoing HTTP."""

from temporalio import activity

from activities.errors import as_failures
from app.contracts.webhooks import AttemptOutcome, AttemptRef, WebhookActivities
from app.webhooks.attempts import Attempts


class WebhookActivitiesOverHTTP(WebhookActivities):
    """Through `app.webhooks.attempts`."""

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts

    @activity.defn(name="attempt_delivery")
    async def attempt_delivery(self, attempt: AttemptRef) -> AttemptOutcome:
        with as_failures():
            return await self._attempts.make_first(attempt)
