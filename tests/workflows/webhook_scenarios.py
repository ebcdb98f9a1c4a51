"""The workflow that tells endpoints of events, and every way it ends."""

from collections.abc import Callable

from app.contracts.engine import STORE_UNAVAILABLE
from app.contracts.webhooks import AttemptOutcome, DeliverWebhook, DeliverWebhookInput, DeliveryStatus
from tests.workflows.fakes import Script, fails
from tests.workflows.scenario import Scenario

ROUND = 3
"""Attempts of the first round, when our own side fails; before it comes the local activity."""
DELIVER = DeliverWebhookInput(delivery=41, endpoint=3, team_id=7, event="database.provisioned")
AGAIN = DeliverWebhookInput(delivery=41, endpoint=3, team_id=7, event="database.provisioned", round=1)
ATTEMPT = "attempt_delivery"
REFUSED = "The receiver answered 500."


def _ends(status: DeliveryStatus, spent: int, words: str, wait: float = 0) -> Callable[[], Script]:
    outcome = AttemptOutcome(status=status, spent=spent, wait_seconds=wait, words=words)
    return lambda: Script({ATTEMPT: [lambda: outcome]})


WEBHOOK_SCENARIOS = {
    "webhook-delivered": Scenario(DeliverWebhook, DELIVER, Script, [ATTEMPT], details="Delivered with attempt 1."),
    "webhook-waits-for-its-turn": Scenario(
        DeliverWebhook,
        DELIVER,
        _ends(DeliveryStatus.PENDING, 0, "Waits for its endpoint's turn. Many other attempts are under way."),
        [ATTEMPT],
        details="Waits for its endpoint's turn.",
    ),
    "webhook-delivered-later": Scenario(
        DeliverWebhook,
        DELIVER,
        _ends(DeliveryStatus.PENDING, 1, REFUSED, 5),
        [ATTEMPT],
        details="The receiver answered 500. Attempt 2 follows in 5 s; until then it waits.",
    ),
    "webhook-failed": Scenario(
        DeliverWebhook,
        DELIVER,
        _ends(DeliveryStatus.FAILED, 1, REFUSED),
        [ATTEMPT],
        details="Not delivered after 1 attempts. The receiver answered 500.",
    ),
    "webhook-sent-again": Scenario(DeliverWebhook, AGAIN, Script, [ATTEMPT], details="Delivered with attempt 1."),
    "webhook-store-away": Scenario(
        DeliverWebhook,
        DELIVER,
        lambda: Script({ATTEMPT: [fails(STORE_UNAVAILABLE)] * (1 + ROUND)}),
        [ATTEMPT] * (1 + ROUND + 1),
        details="Delivered with attempt 1.",
    ),
}
