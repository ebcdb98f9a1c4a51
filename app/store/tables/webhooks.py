"""Webhook endpoints, deliveries and attempts."""

from piccolo.columns import UUID, Array, BigSerial, Boolean, Bytea, ForeignKey, Integer, Text
from piccolo.columns.base import OnDelete
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables import columns
from app.store.tables.accounts import Team, User
from app.store.tables.requests import Event


class WebhookEndpoint(Table, tablename="webhook_endpoints", db=DB):
    """The target of a team's events. An empty `events` means all of them.

    `slow_failures` counts consecutive attempts that kept a connection open and got no answer. From a certain number on,
    only single probes are sent, none before `circuit_until`.

    `next_attempt_at` is when the next waiting delivery is due; null when none waits. The worker `claimed_by` serves the
    endpoint until `claimed_until`.
    """

    id = BigSerial(primary_key=True)
    team_id = ForeignKey(Team, null=False, on_delete=OnDelete.restrict)
    created_by_id = ForeignKey(User, null=True, on_delete=OnDelete.set_null)
    url = Text()
    events = Array(base_column=Text(), default=list)
    last_success_at = columns.moment()
    last_failure_at = columns.moment()
    slow_failures = Integer(default=0)
    circuit_until = columns.moment()
    next_attempt_at = columns.moment()
    claimed_by = UUID(null=True, default=None)
    claimed_until = columns.moment()
    revoked_at = columns.moment()
    created_at = columns.created_at()


class WebhookSecret(Table, tablename="webhook_secrets", db=DB):
    """A sealed signing secret. The newest signs; a replaced one signs too until it expires."""

    id = BigSerial(primary_key=True)
    uuid = UUID(unique=True)
    endpoint_id = ForeignKey(WebhookEndpoint, null=False, on_delete=OnDelete.cascade, index=True)
    secret_sealed = Bytea()
    expires_at = columns.moment()
    created_at = columns.created_at()


class WebhookDelivery(Table, tablename="webhook_deliveries", db=DB):
    """One event for one endpoint, or a ping, whose `payload` is stored here because it has no event.

    `round` counts the requested redeliveries, `spent` the attempts of this round, `attempt_count` all attempts. While
    it is `waiting`, its endpoint's row says when it is due; what is pending without that was begun by version 0.1.0.
    """

    id = BigSerial(primary_key=True)
    webhook_id = Text()
    endpoint_id = ForeignKey(WebhookEndpoint, null=False, on_delete=OnDelete.cascade)
    event_id = ForeignKey(Event, null=True, on_delete=OnDelete.cascade)
    event_type = Text()
    payload = Text(null=True, default=None)
    status = Text(default="pending")
    response_code = Integer(null=True, default=None)
    error_message = Text(null=True, default=None)
    attempt_count = Integer(default=0)
    round = Integer(default=0)
    spent = Integer(default=0)
    next_attempt_at = columns.moment()
    waiting = Boolean(default=False)
    round_started_at = columns.created_at()
    finished_at = columns.moment()
    created_at = columns.created_at()
    one_per_endpoint = Unique([event_id, endpoint_id])


class WebhookAttempt(Table, tablename="webhook_attempts", db=DB):
    """One attempt to send a request. `response_body` has the first bytes of the answer, as text."""

    id = BigSerial(primary_key=True)
    delivery_id = ForeignKey(WebhookDelivery, null=False, on_delete=OnDelete.cascade, index=True)
    response_code = Integer(null=True, default=None)
    error_message = Text(null=True, default=None)
    response_body = Text(null=True, default=None)
    duration_ms = Integer()
    created_at = columns.created_at()
