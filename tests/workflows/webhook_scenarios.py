"""The workflows that tell endpoints of events, and every way they end."""

from collections.abc import Callable

from app.contracts.engine import STORE_UNAVAILABLE
from app.contracts.webhooks import (
    AttemptOutcome,
    DeliverWebhook,
    DeliverWebhookInput,
    DeliveryStatus,
    EndDeliveries,
    EndDeliveriesInput,
    WaitingDeliveries,
)
from tests.workflows.fakes import Script, fails
from tests.workflows.scenario import Scenario

ROUND = 3
"""Tries of the first round, when our own side fails; before it comes the one at hand."""
DELIVER = DeliverWebhookInput(delivery=41, endpoint=3, team_id=7, event="database.provisioned")
LATER = DeliverWebhookInput(delivery=41, endpoint=3, team_id=7, event="database.provisioned", wait_seconds=0.1)
AGAIN = DeliverWebhookInput(
    delivery=41, endpoint=3, team_id=7, event="database.provisioned", round=1, supersedes="deliver-webhook/gone/3"
)


def _refused(spent: int) -> Callable[[], AttemptOutcome]:
    outcome = AttemptOutcome(
        status=DeliveryStatus.PENDING, spent=spent, wait_seconds=0.1, words="The receiver answered 500."
    )
    return lambda: outcome


def _failed(spent: int, words: str) -> Callable[[], AttemptOutcome]:
    return lambda: AttemptOutcome(status=DeliveryStatus.FAILED, spent=spent, words=words)


def _page(last: int | None) -> Callable[[], WaitingDeliveries]:
    return lambda: WaitingDeliveries(last=last, workflow_ids=["deliver-webhook/gone/1", "deliver-webhook/gone/2"])


ATTEMPT = "attempt_delivery"
WEBHOOK_SCENARIOS = {
    "webhook-delivered": Scenario(DeliverWebhook, DELIVER, Script, [ATTEMPT], details="Delivered with attempt 1."),
    "webhook-not-at-hand": Scenario(
        DeliverWebhook,
        DELIVER,
        lambda: Script({ATTEMPT: [lambda: AttemptOutcome(status=DeliveryStatus.PENDING, spent=0)]}),
        [ATTEMPT] * 2,
        details="Delivered with attempt 1.",
    ),
    "webhook-delivered-later": Scenario(
        DeliverWebhook,
        LATER,
        lambda: Script({ATTEMPT: [_refused(1), _refused(2)]}),
        [ATTEMPT] * 3,
        details="Delivered with attempt 3.",
    ),
    "webhook-failed": Scenario(
        DeliverWebhook,
        DELIVER,
        lambda: Script({ATTEMPT: [_refused(1), _failed(2, "The receiver answered 500.")]}),
        [ATTEMPT] * 2,
        details="Not delivered after 2 attempts. The receiver answered 500.",
    ),
    "webhook-sent-again": Scenario(DeliverWebhook, AGAIN, Script, [ATTEMPT], details="Delivered with attempt 1."),
    "webhook-store-away": Scenario(
        DeliverWebhook,
        DELIVER,
        lambda: Script({ATTEMPT: [fails(STORE_UNAVAILABLE)] * (1 + ROUND)}),
        [ATTEMPT] * (1 + ROUND + 1),
        details="Delivered with attempt 1.",
    ),
    "endpoint-revoked": Scenario(
        EndDeliveries,
        EndDeliveriesInput(endpoint=3, team_id=7),
        lambda: Script({"list_ended_deliveries": [_page(500), _page(None)]}),
        ["list_ended_deliveries"] * 2,
        details="4 deliveries were told",
    ),
}
