"""The activity of webhooks, following a script."""

from temporalio import activity

from app.contracts.webhooks import AttemptOutcome, AttemptRef, DeliveryStatus, WebhookActivities
from tests.workflows.fakes import Script


class FakeWebhooks(WebhookActivities):
    """Delivers with the first attempt, unless the script says otherwise."""

    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="attempt_delivery")
    async def attempt_delivery(self, attempt: AttemptRef) -> AttemptOutcome:
        delivered = AttemptOutcome(status=DeliveryStatus.DELIVERED, spent=1)
        outcome: AttemptOutcome = await self._script.perform(attempt, delivered)
        return outcome
