"""Who is told of events, and what became of the telling."""

from piccolo.columns import UUID, Array, BigSerial, Boolean, Bytea, ForeignKey, Integer, Text
from piccolo.columns.base import OnDelete
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables import columns
from app.store.tables.accounts import Team, User
from app.store.tables.requests import Event


class WebhookEndpoint(Table, tablename="webhook_endpoints", db=DB):
    """Where a team's events are sent. An empty `events` means all of them.

    `slow_failures` counts the attempts in a row that held a connection and got no answer; from a certain number on
    nothing but a single probe is sent, and that not before `circuit_until`.

    `next_attempt_at` is when the next delivery that waits for it is to be attempted; null when none waits. The worker
    `claimed_by` is at it until `claimed_until`.
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
    """A signing secret, sealed. The newest signs; one that was replaced signs beside it until it expires."""

    id = BigSerial(primary_key=True)
    uuid = UUID(unique=True)
    endpoint_id = ForeignKey(WebhookEndpoint, null=False, on_delete=OnDelete.cascade, index=True)
    secret_sealed = Bytea()
    expires_at = columns.moment()
    created_at = columns.created_at()


class WebhookDelivery(Table, tablename="webhook_deliveries", db=DB):
    """One event for one endpoint, or a ping, whose `payload` is here for want of an event.

    `round` counts how often it was asked for again, `spent` the attempts of this round, `attempt_count` those of all.
    While it is `waiting` no workflow is at it: its endpoint's row says when it is looked at.
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
    """One request that was sent, or tried to be. `response_body` has the first bytes of the answer, as text."""

    id = BigSerial(primary_key=True)
    delivery_id = ForeignKey(WebhookDelivery, null=False, on_delete=OnDelete.cascade, index=True)
    response_code = Integer(null=True, default=None)
    error_message = Text(null=True, default=None)
    response_body = Text(null=True, default=None)
    duration_ms = Integer()
    created_at = columns.created_at()
