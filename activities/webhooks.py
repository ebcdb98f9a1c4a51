"""Deliveries to webhook endpoints: outgoing HTTP, and what our own database knows of them."""

from temporalio import activity

from activities.errors import as_failures
from app.contracts.webhooks import (
    AttemptOutcome,
    AttemptRef,
    DeliveriesPage,
    DeliveryRecords,
    WaitingDeliveries,
    WebhookActivities,
)
from app.webhooks.attempts import Attempts
from app.webhooks.revocation import list_ended


class WebhookActivitiesOverHTTP(WebhookActivities):
    """Through `app.webhooks.attempts`, where the attempt is made."""

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts

    @activity.defn(name="attempt_delivery")
    async def attempt_delivery(self, attempt: AttemptRef) -> AttemptOutcome:
        with as_failures():
            return await self._attempts.make(attempt)


class DeliveryRecordsOnStore(DeliveryRecords):
    @activity.defn(name="list_ended_deliveries")
    async def list_ended_deliveries(self, page: DeliveriesPage) -> WaitingDeliveries:
        with as_failures():
            return await list_ended(page)
