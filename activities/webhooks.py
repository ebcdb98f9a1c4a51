"""The activity of deliveries that an earlier version has begun."""

from temporalio import activity

from activities.errors import as_failures
from app.contracts.webhooks import AttemptOutcome, AttemptRef, DeliveryStatus, WebhookActivities
from app.webhooks import waiting


class WebhookActivitiesOnStore(WebhookActivities):
    """Hands the deliveries over: `workers.deliveries` sends everything."""

    @activity.defn(name="attempt_delivery")
    async def attempt_delivery(self, attempt: AttemptRef) -> AttemptOutcome:
        with as_failures():
            await waiting.take_over([attempt.delivery])
        return AttemptOutcome(status=DeliveryStatus.PENDING, spent=0, words="Waits for its endpoint's turn.")
