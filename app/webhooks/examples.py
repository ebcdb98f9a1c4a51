"""One endpoint and its deliveries, for the API's description."""

from datetime import UTC, datetime
from typing import Any

from app.contracts.webhooks import DeliveryStatus
from app.outbox.event_types import EventType
from app.webhooks.schemas import AttemptView, DeliveryView, DeliveryWithAttempts, EndpointView

EXAMPLE_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="  # noqa: S105 - it signs nothing
_ANSWERED_AT = datetime(2026, 11, 20, 8, 0, 5, tzinfo=UTC)
_DELIVERY: dict[str, Any] = {
    "id": 41,
    "endpoint_id": 3,
    "webhook_id": "msg_7f6c2b1e4d0a4c8e9b573a1f2e6d8c90_3",
    "event_type": EventType.DATABASE_PROVISIONED.value,
    "status": DeliveryStatus.DELIVERED,
    "response_code": 204,
    "error_message": None,
    "attempt_count": 1,
    "next_attempt_at": None,
    "created_at": "2026-11-20 08:00:05",
}

EXAMPLE_ENDPOINT = EndpointView(
    id=3,
    team_id=1,
    url="https://hooks.example.com/headwater",
    events=[EventType.DATABASE_PROVISIONED.value, EventType.DATABASE_DELETED.value],
    status="active",
    last_success_at="2026-11-20 08:00:05",
    last_failure_at=None,
    created_at="2026-11-20 07:00:00",
)
EXAMPLE_DELIVERY = DeliveryView(**_DELIVERY)
EXAMPLE_RETRIED = DeliveryView(
    **(_DELIVERY | {"status": DeliveryStatus.PENDING, "attempt_count": 10, "response_code": 500})
)
EXAMPLE_PING = DeliveryView(
    **(_DELIVERY | {"id": 42, "webhook_id": "msg_3a1f2e6d8c907f6c2b1e4d0a4c8e9b57", "event_type": EventType.PING.value})
)
EXAMPLE_ATTEMPTS = DeliveryWithAttempts(
    attempts=[
        AttemptView(response_code=204, error_message=None, response_body="", duration_ms=31, created_at=_ANSWERED_AT)
    ],
    request_body='{"event":"database.provisioned","timestamp":"2026-11-20T08:00:00+00:00","data":{"object":"database"}}',
    **_DELIVERY,
)
