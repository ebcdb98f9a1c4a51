"""The shapes of webhooks on the wire. Interface specification, sections 2.2, 2.3 and 4.14."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from app.contracts.webhooks import DeliveryStatus
from app.core.clock import Moment
from app.core.context import current_request_id
from app.outbox.event_types import EventType
from app.webhooks.egress.targets import MAX_LENGTH
from app.webhooks.records import AttemptRecord, DeliveryRecord, EndpointRecord

URL = Annotated[
    str,
    Meta(
        max_length=MAX_LENGTH,
        extra_json_schema={"format": "uri", "pattern": "^[Hh][Tt][Tt][Pp][Ss]://", "minLength": len("https://x")},
    ),
]
"""Taken apart by the service, whose refusal says what is wrong with it."""
EventName = Annotated[str, Meta(extra_json_schema={"enum": [event.value for event in EventType]})]
"""Checked by the service, whose refusal names the events that there are."""
Timestamp = Annotated[str, Meta(pattern=r"\A[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\Z")]
"""`YYYY-MM-DD HH:MM:SS` in UTC: the form that interface specification section 2.2 shows."""


class CreateEndpoint(Struct, kw_only=True, forbid_unknown_fields=True):
    """An empty list of events means all of them."""

    url: URL
    events: list[EventName] = field(default_factory=list)
    team_id: Annotated[int, Meta(ge=1, le=2**63 - 1)] | UnsetType = UNSET


class ChangeEndpoint(Struct, kw_only=True, forbid_unknown_fields=True):
    """Changes of an endpoint. A field that is left out stays as it is."""

    url: URL | UnsetType = UNSET
    events: list[EventName] | UnsetType = UNSET


class EndpointView(Struct, kw_only=True):
    object: Literal["webhook_endpoint"] = "webhook_endpoint"
    id: int
    team_id: int
    url: str
    events: list[str]
    status: Literal["active", "revoked"]
    last_success_at: Timestamp | None
    last_failure_at: Timestamp | None
    created_at: Timestamp


class DeliveryView(Struct, kw_only=True):
    """A WebhookDelivery. `webhook_id` is what the receiver sees in the header of that name, in every attempt."""

    object: Literal["webhook_delivery"] = "webhook_delivery"
    id: int
    endpoint_id: int
    webhook_id: str
    event_type: str
    status: DeliveryStatus
    response_code: int | None
    error_message: str | None
    attempt_count: int
    next_attempt_at: Moment | None
    created_at: Timestamp


class AttemptView(Struct, kw_only=True):
    """One request to the receiver, with the first bytes of its answer."""

    response_code: int | None
    error_message: str | None
    response_body: str | None
    duration_ms: int
    created_at: Moment


class DeliveryWithAttempts(DeliveryView, kw_only=True):
    attempts: list[AttemptView]
    request_body: str
    """The body that each attempt sends."""


class RevokedEndpoint(Struct, kw_only=True):
    id: int


class EndpointWithSecret(Struct, kw_only=True):
    """An endpoint with its signing secret, which is shown this once and never again."""

    message: str
    data: EndpointView
    secret: str
    request_id: str = field(default_factory=current_request_id)
    idempotency_replay: bool | UnsetType = UNSET
    """True when an earlier request with this key did it, and this is the answer that it got."""


def endpoint_view(record: EndpointRecord) -> EndpointView:
    return EndpointView(
        id=record.id,
        team_id=record.team_id,
        url=record.url,
        events=record.events,
        status="active" if record.revoked_at is None else "revoked",
        last_success_at=_timestamp(record.last_success_at),
        last_failure_at=_timestamp(record.last_failure_at),
        created_at=timestamp(record.created_at),
    )


def delivery_view(record: DeliveryRecord) -> DeliveryView:
    return DeliveryView(**_fields(record))


def delivery_with_attempts(
    record: DeliveryRecord, attempts: list[AttemptRecord], request_body: str
) -> DeliveryWithAttempts:
    views = [
        AttemptView(
            response_code=attempt.response_code,
            error_message=attempt.error_message,
            response_body=attempt.response_body,
            duration_ms=attempt.duration_ms,
            created_at=attempt.created_at,
        )
        for attempt in attempts
    ]
    return DeliveryWithAttempts(attempts=views, request_body=request_body, **_fields(record))


def timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _timestamp(moment: datetime | None) -> str | None:
    return None if moment is None else timestamp(moment)


def _fields(record: DeliveryRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "endpoint_id": record.endpoint_id,
        "webhook_id": record.webhook_id,
        "event_type": record.event_type,
        "status": record.status,
        "response_code": record.response_code,
        "error_message": record.error_message,
        "attempt_count": record.attempt_count,
        "next_attempt_at": record.next_attempt_at,
        "created_at": timestamp(record.created_at),
    }
