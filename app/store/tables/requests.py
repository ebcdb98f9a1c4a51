"""What requests leave behind: idempotency keys, events, and workflows to start."""

from piccolo.columns import JSONB, UUID, Array, BigInt, BigSerial, Bytea, ForeignKey, Integer, Text, Timestamptz
from piccolo.columns.base import OnDelete
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB
from app.store.tables import columns
from app.store.tables.accounts import Team, User
from app.store.tables.databases import Database


class IdempotencyKey(Table, tablename="idempotency_keys", db=DB):
    """One accepted request, by its caller's key.

    Written in the transaction of its change. `resource` is the subject of the change, from which a retry after a crash
    resumes. `response_sealed` is the answer, once there is one: for whoever is in team `team_id`, which the change
    concerned, where it concerned one.
    """

    id = BigSerial(primary_key=True)
    user_id = ForeignKey(User, null=False, on_delete=OnDelete.cascade)
    key = Text()
    fingerprint = Bytea()
    owner = UUID(null=True, default=None)
    locked_until = columns.moment()
    resource = Text(null=True, default=None)
    team_id = BigInt(null=True, default=None)
    response_status = Integer(null=True, default=None)
    response_sealed = Bytea(null=True, default=None)
    created_at = columns.created_at()
    expires_at = Timestamptz()
    one_per_user = Unique([user_id, key])


class Event(Table, tablename="events", db=DB):
    """The outbox: an event, written in the transaction of its change. Never holds a secret. `traceparent` is the trace
    that the change belongs to."""

    id = BigSerial(primary_key=True)
    uuid = UUID(unique=True)
    type = Text()
    database_id = ForeignKey(Database, null=True, on_delete=OnDelete.set_null)
    team_id = ForeignKey(Team, null=False, on_delete=OnDelete.restrict)
    payload = JSONB()
    created_at = columns.created_at()
    dispatched_at = columns.moment()
    traceparent = Text(null=True, default=None)


class WorkflowStart(Table, tablename="workflow_starts", db=DB):
    """A pending start: a workflow that a committed change requested. The row is deleted when Temporal has accepted
    the workflow. A row with a `signal` reports one more change to a workflow that may be running; each has its own
    row, while other requests share one for each `workflow_id`. `labels` are the database's, for the workflow's search
    attributes; `traceparent` is the trace that the change belongs to."""

    id = BigSerial(primary_key=True)
    workflow = Text()
    workflow_id = Text()
    signal = Text(null=True, default=None)
    input = JSONB()
    priority = Integer(default=3)
    summary = Text()
    attempts = Integer(default=0)
    last_error = Text(null=True, default=None)
    next_attempt_at = Timestamptz()
    created_at = columns.created_at()
    labels = Array(base_column=Text(), default=list)
    traceparent = Text(null=True, default=None)
