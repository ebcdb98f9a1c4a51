"""Every table of our own state. Times are UTC; durations are computed from them, never stored beside them."""

from piccolo.columns import (
    JSONB,
    UUID,
    Array,
    BigInt,
    BigSerial,
    Boolean,
    Bytea,
    Date,
    DoublePrecision,
    ForeignKey,
    Integer,
    Text,
    Timestamptz,
)
from piccolo.columns.base import OnDelete
from piccolo.columns.defaults.date import DateNow
from piccolo.columns.defaults.timestamptz import TimestamptzNow
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB


def _created_at() -> Timestamptz:
    return Timestamptz(default=TimestamptzNow())


def _moment() -> Timestamptz:
    """A moment that may not have come yet."""
    return Timestamptz(null=True, default=None)


class User(Table, tablename="users", db=DB):
    """A person, or a program, that owns API keys."""

    id = BigSerial(primary_key=True)
    email = Text(unique=True)
    name = Text()
    created_at = _created_at()


class Team(Table, tablename="teams", db=DB):
    """What owns databases. Its tier (`free`, `pro`, `enterprise`) sets what it may own."""

    id = BigSerial(primary_key=True)
    name = Text()
    tier = Text(default="free")
    created_at = _created_at()


class Membership(Table, tablename="memberships", db=DB):
    """A user in a team. A user's primary team is the one joined first."""

    id = BigSerial(primary_key=True)
    user_id = ForeignKey(User, null=False, on_delete=OnDelete.cascade)
    team_id = ForeignKey(Team, null=False, on_delete=OnDelete.cascade)
    created_at = _created_at()
    one_per_team = Unique([user_id, team_id])


class ApiKey(Table, tablename="api_keys", db=DB):
    """A key's SHA-256 and its controls; the key itself is nowhere."""

    id = BigSerial(primary_key=True)
    user_id = ForeignKey(User, null=False, on_delete=OnDelete.cascade)
    name = Text()
    preview = Text()
    hash = Bytea(unique=True)
    scopes = Array(base_column=Text())
    requests_per_minute = Integer(default=120)
    monthly_quota = Integer(null=True, default=None)
    allowed_ips = Array(base_column=Text(), default=list)
    inactive_ttl_days = Integer(null=True, default=None)
    expires_at = _moment()
    revoked_at = _moment()
    created_at = _created_at()


class ApiKeyUsage(Table, tablename="api_key_usage", db=DB):
    """A key's counters: of the present minute and the present month. Apart from the key, because they change with
    every request. A minute begins with its first request. `month_added` is by how much the last statement raised
    `month_count`."""

    id = BigSerial(primary_key=True)
    key_id = ForeignKey(ApiKey, null=False, unique=True, on_delete=OnDelete.cascade)
    last_used_at = _moment()
    window_start = Timestamptz(default=TimestamptzNow())
    window_count = Integer(default=0)
    month = Date(default=DateNow())
    month_count = BigInt(default=0)
    month_added = Integer(default=0)


class EngineHost(Table, tablename="engine_hosts", db=DB):
    """A server that holds tenant databases.

    `host` and `port` are the public address, which tenants are told; `admin_sealed` is how the service gets in.
    `sick_until` keeps a host that failed out of placement for a while.
    """

    id = BigSerial(primary_key=True)
    engine = Text()
    flavour = Text()
    version = Text()
    region = Text()
    host = Text()
    port = Integer()
    admin_sealed = Bytea()
    capacity = Integer()
    connection_capacity = Integer()
    draining = Boolean(default=False)
    sick_until = _moment()
    sick_reason = Text(null=True, default=None)
    created_at = _created_at()
    one_address = Unique([engine, host, port])


class Database(Table, tablename="databases", db=DB):
    """A database of a team's, from the request to long after its end.

    `id` gives the order of lists. `engine_name` is database and role on the host. `remote_since` is set before
    the first statement on a host, so that its absence proves that nothing was ever made there.
    """

    id = BigSerial(primary_key=True)
    uuid = UUID(unique=True)
    team_id = ForeignKey(Team, null=False, on_delete=OnDelete.restrict)
    created_by_id = ForeignKey(User, null=True, on_delete=OnDelete.set_null)
    name = Text()
    engine = Text()
    region = Text()
    plan = Text()
    status = Text()
    host_id = ForeignKey(EngineHost, null=False, on_delete=OnDelete.restrict)
    engine_name = Text()
    password_sealed = Bytea(null=True, default=None)
    storage_hard_limit_gb = DoublePrecision(null=True, default=None)
    connection_hard_limit = Integer(null=True, default=None)
    warning_threshold_pct = Integer(null=True, default=None)
    connections = Integer()
    limits_revision = Integer(default=0)
    limits_applied = Integer(default=0)
    remote_since = _moment()
    provisioned_at = _moment()
    deleted_at = _moment()
    cancelled_provision_jobs = Integer(default=0)
    revoked_at = _moment()
    destroy_at = _moment()
    destroyed_at = _moment()
    created_at = _created_at()
    updated_at = _created_at()


class IdempotencyKey(Table, tablename="idempotency_keys", db=DB):
    """One accepted request, by its caller's key.

    Written in the transaction of the change that it stands for. `resource` is that change's subject, from which
    a retry after a crash resumes; `response_sealed` is the answer, once there is one.
    """

    id = BigSerial(primary_key=True)
    user_id = ForeignKey(User, null=False, on_delete=OnDelete.cascade)
    key = Text()
    fingerprint = Bytea()
    owner = UUID(null=True, default=None)
    locked_until = _moment()
    resource = Text(null=True, default=None)
    response_status = Integer(null=True, default=None)
    response_sealed = Bytea(null=True, default=None)
    created_at = _created_at()
    expires_at = Timestamptz()
    one_per_user = Unique([user_id, key])


class Event(Table, tablename="events", db=DB):
    """The outbox: what happened, in the transaction in which it happened. Never holds a secret."""

    id = BigSerial(primary_key=True)
    uuid = UUID(unique=True)
    type = Text()
    database_id = ForeignKey(Database, null=True, on_delete=OnDelete.set_null)
    team_id = ForeignKey(Team, null=False, on_delete=OnDelete.restrict)
    payload = JSONB()
    created_at = _created_at()
    dispatched_at = _moment()


class WorkflowStart(Table, tablename="workflow_starts", db=DB):
    """A workflow that a committed change asked for. The row goes when Temporal has accepted the workflow."""

    id = BigSerial(primary_key=True)
    workflow = Text()
    workflow_id = Text(unique=True)
    input = JSONB()
    priority = Integer(default=3)
    attempts = Integer(default=0)
    last_error = Text(null=True, default=None)
    next_attempt_at = Timestamptz()
    created_at = _created_at()


TABLES = (User, Team, Membership, ApiKey, ApiKeyUsage, EngineHost, Database, IdempotencyKey, Event, WorkflowStart)
