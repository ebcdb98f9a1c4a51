"""The activities of webhooks, following a script."""

from temporalio import activity

from app.contracts.webhooks import (
    AttemptOutcome,
    AttemptRef,
    DeliveriesPage,
    DeliveryRecords,
    DeliveryStatus,
    WaitingDeliveries,
    WebhookActivities,
)
from tests.workflows.fakes import Script


class FakeWebhooks(WebhookActivities):
    """Delivers with the first attempt, unless the script says otherwise."""

    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="attempt_delivery")
    async def attempt_delivery(self, attempt: AttemptRef) -> AttemptOutcome:
        delivered = AttemptOutcome(status=DeliveryStatus.DELIVERED, spent=attempt.spent + 1)
        outcome: AttemptOutcome = await self._script.perform(attempt, delivered)
        return outcome


class FakeDeliveryRecords(DeliveryRecords):
    """One page with one delivery, whose workflow is gone."""

    def __init__(self, script: Script) -> None:
        self._script = script

    @activity.defn(name="list_ended_deliveries")
    async def list_ended_deliveries(self, page: DeliveriesPage) -> WaitingDeliveries:
        one = WaitingDeliveries(last=None, workflow_ids=["deliver-webhook/gone/1"])
        waiting: WaitingDeliveries = await self._script.perform(page, one)
        return waiting
