"""The schema of release 0.1.0, which every later migration starts from. Never edited.

The tables are copies of the classes in `app.store.tables` as they were then: those change, this file doesn't. Columns
stand in the order in which installations from before the release have them.
"""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
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

ID = "2026-11-22T06:30:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "0.1.0"


def _created_at() -> Timestamptz:
    return Timestamptz(default=TimestamptzNow())


def _moment() -> Timestamptz:
    return Timestamptz(null=True, default=None)


class Installation(Table, tablename="installation"):
    id = UUID(primary_key=True)


class User(Table, tablename="users"):
    id = BigSerial(primary_key=True)
    email = Text(unique=True)
    name = Text()
    created_at = _created_at()


class Team(Table, tablename="teams"):
    id = BigSerial(primary_key=True)
    name = Text()
    tier = Text(default="free")
    created_at = _created_at()
    queries = Text(default="ddl")


class Membership(Table, tablename="memberships"):
    id = BigSerial(primary_key=True)
    user_id = ForeignKey(User, null=False, on_delete=OnDelete.cascade)
    team_id = ForeignKey(Team, null=False, on_delete=OnDelete.cascade)
    created_at = _created_at()
    one_per_team = Unique([user_id, team_id])


class ApiKey(Table, tablename="api_keys"):
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


class ApiKeyUsage(Table, tablename="api_key_usage"):
    id = BigSerial(primary_key=True)
    key_id = ForeignKey(ApiKey, null=False, unique=True, on_delete=OnDelete.cascade)
    last_used_at = _moment()
    window_start = Timestamptz(default=TimestamptzNow())
    window_count = Integer(default=0)
    month = Date(default=DateNow())
    month_count = BigInt(default=0)
    month_added = Integer(default=0)


class EngineHost(Table, tablename="engine_hosts"):
    id = BigSerial(primary_key=True)
    engine = Text()
    flavour = Text()
    version = Text()
    region = Text()
    host = Text()
    port = Integer()
    admin_sealed = Bytea(null=True, default=None)
    capacity = Integer()
    connection_capacity = Integer()
    draining = Boolean(default=False)
    sick_until = _moment()
    sick_reason = Text(null=True, default=None)
    created_at = _created_at()
    removed_at = _moment()
    tls = Text(default="prefer")
    tls_ca = Text(null=True, default=None)
    extensions = Array(base_column=Text(), default=list)
    one_address = Unique([engine, host, port])


class Database(Table, tablename="databases"):
    id = BigSerial(primary_key=True)
    uuid = UUID(unique=True)
    team_id = ForeignKey(Team, null=True, on_delete=OnDelete.restrict)
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
    position = BigSerial()
    verified_at = _moment()
    access_applied = Integer(default=0)
    access_changed_at = _moment()
    access_revision = Integer(default=0)
    frozen_at = _moment()
    paused_reason = Text(null=True, default=None)
    deletion_revision = Integer(default=0)
    login_tried_at = _moment()
    credentials_refused_at = _moment()


class IdempotencyKey(Table, tablename="idempotency_keys"):
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


class Event(Table, tablename="events"):
    id = BigSerial(primary_key=True)
    uuid = UUID(unique=True)
    type = Text()
    database_id = ForeignKey(Database, null=True, on_delete=OnDelete.set_null)
    team_id = ForeignKey(Team, null=False, on_delete=OnDelete.restrict)
    payload = JSONB()
    created_at = _created_at()
    dispatched_at = _moment()


class WorkflowStart(Table, tablename="workflow_starts"):
    id = BigSerial(primary_key=True)
    workflow = Text()
    workflow_id = Text()
    input = JSONB()
    priority = Integer(default=3)
    attempts = Integer(default=0)
    last_error = Text(null=True, default=None)
    next_attempt_at = Timestamptz()
    created_at = _created_at()
    summary = Text()
    signal = Text(null=True, default=None)


class QueryReader(Table, tablename="query_readers"):
    id = BigSerial(primary_key=True)
    database_id = ForeignKey(Database, null=False, unique=True, on_delete=OnDelete.cascade)
    password_sealed = Bytea()
    created_at = _created_at()


class QueryExecution(Table, tablename="query_executions"):
    id = BigSerial(primary_key=True)
    team_id = ForeignKey(Team, null=False, on_delete=OnDelete.restrict)
    user_id = ForeignKey(User, null=True, on_delete=OnDelete.set_null)
    database_id = ForeignKey(Database, null=True, on_delete=OnDelete.set_null)
    question = Text()
    model = Text()
    counts = Boolean(null=True, default=None)
    reserved_until = Timestamptz()
    declared_kind = Text(null=True, default=None)
    sql = Text(null=True, default=None)
    sql_class = Text(null=True, default=None)
    verdict = Text(null=True, default=None)
    reason = Text(null=True, default=None)
    outcome = Text(null=True, default=None)
    error_code = Text(null=True, default=None)
    turns = Integer(default=0)
    prompt_tokens = BigInt(default=0)
    completion_tokens = BigInt(default=0)
    row_count = BigInt(null=True, default=None)
    truncated = Boolean(default=False)
    model_ms = Integer(null=True, default=None)
    duration_ms = Integer(null=True, default=None)
    created_at = _created_at()
    finished_at = _moment()


class PoolTarget(Table, tablename="pool_targets"):
    id = BigSerial(primary_key=True)
    region = Text()
    engine = Text()
    size = Integer(null=True, default=None)
    setting = Integer(null=True, default=None)
    one_each = Unique([region, engine])


class Finding(Table, tablename="findings"):
    id = BigSerial(primary_key=True)
    host_id = ForeignKey(EngineHost, null=True, on_delete=OnDelete.cascade)
    rule = Text()
    subject = Text()
    mark = Text(default="")
    detail = Text()
    first_seen_at = _created_at()
    last_seen_at = _created_at()


class WebhookEndpoint(Table, tablename="webhook_endpoints"):
    id = BigSerial(primary_key=True)
    team_id = ForeignKey(Team, null=False, on_delete=OnDelete.restrict)
    created_by_id = ForeignKey(User, null=True, on_delete=OnDelete.set_null)
    url = Text()
    events = Array(base_column=Text(), default=list)
    last_success_at = _moment()
    last_failure_at = _moment()
    slow_failures = Integer(default=0)
    circuit_until = _moment()
    revoked_at = _moment()
    created_at = _created_at()
    next_attempt_at = _moment()
    claimed_by = UUID(null=True, default=None)
    claimed_until = _moment()


class WebhookSecret(Table, tablename="webhook_secrets"):
    id = BigSerial(primary_key=True)
    uuid = UUID(unique=True)
    endpoint_id = ForeignKey(WebhookEndpoint, null=False, on_delete=OnDelete.cascade, index=True)
    secret_sealed = Bytea()
    expires_at = _moment()
    created_at = _created_at()


class WebhookDelivery(Table, tablename="webhook_deliveries"):
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
    next_attempt_at = _moment()
    round_started_at = _created_at()
    finished_at = _moment()
    created_at = _created_at()
    waiting = Boolean(default=False)
    one_per_endpoint = Unique([event_id, endpoint_id])


class WebhookAttempt(Table, tablename="webhook_attempts"):
    id = BigSerial(primary_key=True)
    delivery_id = ForeignKey(WebhookDelivery, null=False, on_delete=OnDelete.cascade, index=True)
    response_code = Integer(null=True, default=None)
    error_message = Text(null=True, default=None)
    response_body = Text(null=True, default=None)
    duration_ms = Integer()
    created_at = _created_at()


class Blueprint(Table, tablename="blueprints"):
    id = BigSerial(primary_key=True)
    uuid = UUID(unique=True)
    team_id = ForeignKey(Team, null=True, on_delete=OnDelete.restrict)
    created_by_id = ForeignKey(User, null=True, on_delete=OnDelete.set_null)
    is_system = Boolean(default=False)
    name = Text()
    slug = Text()
    description = Text(null=True, default=None)
    version = Integer(default=1)
    deleted_at = _moment()
    created_at = _created_at()
    updated_at = _created_at()


class BlueprintVersion(Table, tablename="blueprint_versions"):
    id = BigSerial(primary_key=True)
    blueprint_id = ForeignKey(Blueprint, null=False, on_delete=OnDelete.cascade)
    version = Integer()
    sql_content = Text()
    size_bytes = Integer()
    variables = JSONB(null=True, default=None)
    metadata = JSONB(null=True, default=None)
    created_at = _created_at()
    one_per_version = Unique([blueprint_id, version])


class BlueprintApplication(Table, tablename="blueprint_applications"):
    id = BigSerial(primary_key=True)
    blueprint_id = ForeignKey(Blueprint, null=False, on_delete=OnDelete.restrict)
    blueprint_version = Integer()
    database_id = ForeignKey(Database, null=False, on_delete=OnDelete.restrict)
    requested_by_id = ForeignKey(User, null=True, on_delete=OnDelete.set_null)
    status = Text(default="pending")
    is_dry_run = Boolean(default=False)
    at_creation = Boolean(default=False)
    definitions = JSONB(null=True, default=None)
    shown_values = JSONB(null=True, default=None)
    values_sealed = Bytea(null=True, default=None)
    statements_total = Integer(default=0)
    attempt = Integer(default=0)
    losses = Integer(default=0)
    session_reference = Text(null=True, default=None)
    scratch_name = Text(null=True, default=None)
    error_message = Text(null=True, default=None)
    total_duration_ms = Integer(null=True, default=None)
    started_at = _moment()
    completed_at = _moment()
    created_at = _created_at()


class BlueprintStatement(Table, tablename="blueprint_statements"):
    id = BigSerial(primary_key=True)
    application_id = ForeignKey(BlueprintApplication, null=False, on_delete=OnDelete.cascade)
    index = Integer()
    line = Integer()
    kind = Text()
    sql = Text()
    status = Text(default="pending")
    rows = BigInt(null=True, default=None)
    duration_ms = Integer(null=True, default=None)
    error_code = Text(null=True, default=None)
    error_message = Text(null=True, default=None)
    note = Text(null=True, default=None)
    one_per_index = Unique([application_id, index])


class DatabaseUsage(Table, tablename="database_usage"):
    id = BigSerial(primary_key=True)
    database_id = ForeignKey(Database, null=False, unique=True, on_delete=OnDelete.cascade)
    measured_at = Timestamptz()
    storage_bytes = BigInt()
    connected = Boolean()
    runtime_month = Date()
    runtime_seconds = DoublePrecision(default=0.0)
    runtime_excused = Date(null=True, default=None)
    warned_at = _moment()
    frozen_bytes = BigInt(null=True, default=None)
    growing = Integer(default=0)
    judged_at = _moment()
    own_login_until = _moment()
    storage_measured_at = _moment()
    measured_alone_at = _moment()
    unmeasured_since = _moment()
    measure_failures = Integer(default=0)
    measure_failure = Text(null=True, default=None)
    reclaimed_at = _moment()


_TABLES = (
    Installation,
    User,
    Team,
    Membership,
    ApiKey,
    ApiKeyUsage,
    EngineHost,
    Database,
    IdempotencyKey,
    Event,
    WorkflowStart,
    QueryReader,
    QueryExecution,
    PoolTarget,
    Finding,
    WebhookEndpoint,
    WebhookSecret,
    WebhookDelivery,
    WebhookAttempt,
    Blueprint,
    BlueprintVersion,
    BlueprintApplication,
    BlueprintStatement,
    DatabaseUsage,
)

_INDEXES = (
    "CREATE INDEX databases_on_host ON databases (host_id) WHERE destroyed_at IS NULL",
    "CREATE INDEX memberships_of_team ON memberships (team_id)",
    "CREATE INDEX api_keys_of_user ON api_keys (user_id)",
    "CREATE INDEX events_to_dispatch ON events (id) WHERE dispatched_at IS NULL",
    "CREATE INDEX events_of_database ON events (database_id)",
    "CREATE INDEX workflow_starts_due ON workflow_starts (next_attempt_at)",
    "CREATE INDEX idempotency_keys_expired ON idempotency_keys (expires_at)",
    "CREATE INDEX blueprints_in_pages ON blueprints (team_id, (-id)) WHERE deleted_at IS NULL",
    "CREATE INDEX system_blueprints_in_pages ON blueprints ((-id)) WHERE is_system AND deleted_at IS NULL",
    "CREATE UNIQUE INDEX blueprint_slugs ON blueprints (team_id, slug) WHERE deleted_at IS NULL AND NOT is_system",
    "CREATE UNIQUE INDEX system_blueprint_slugs ON blueprints (slug) WHERE deleted_at IS NULL AND is_system",
    "CREATE INDEX applications_of_blueprint ON blueprint_applications (blueprint_id)",
    "CREATE INDEX applications_under_way ON blueprint_applications (database_id, id) WHERE completed_at IS NULL",
    "CREATE INDEX databases_in_order ON databases (team_id, (-position)) WHERE status <> 'deleted'",
    "CREATE INDEX databases_in_pool ON databases (engine, position) WHERE team_id IS NULL AND destroyed_at IS NULL",
    "CREATE INDEX query_executions_of_day ON query_executions (team_id, created_at) WHERE counts IS NOT FALSE",
    "CREATE INDEX query_executions_under_way ON query_executions (team_id) WHERE outcome IS NULL",
    "CREATE INDEX webhook_endpoints_of_team ON webhook_endpoints (team_id, id)",
    "CREATE INDEX webhook_deliveries_in_pages ON webhook_deliveries (endpoint_id, id)",
    "CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (endpoint_id) WHERE status = 'pending'",
    "CREATE UNIQUE INDEX findings_once ON findings (rule, subject, mark, coalesce(host_id, 0))",
    "CREATE INDEX events_over ON events (created_at) WHERE dispatched_at IS NOT NULL",
    "CREATE INDEX query_executions_by_age ON query_executions (created_at)",
    "CREATE INDEX webhook_deliveries_finished ON webhook_deliveries (finished_at) WHERE status <> 'pending'",
    "CREATE UNIQUE INDEX installation_is_one ON installation ((true))",
    "CREATE UNIQUE INDEX workflow_starts_one_start ON workflow_starts (workflow_id) WHERE signal IS NULL",
    "CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (endpoint_id, next_attempt_at, id) WHERE waiting",
    "CREATE INDEX webhook_endpoints_due ON webhook_endpoints (next_attempt_at) WHERE next_attempt_at IS NOT NULL",
    "CREATE INDEX webhook_endpoints_claimed ON webhook_endpoints (team_id) WHERE claimed_until IS NOT NULL",
    "CREATE INDEX databases_deleted_held ON databases (team_id, destroy_at)"
    " WHERE status = 'deleted' AND destroyed_at IS NULL",
)
"""Those that a column can't declare: of several columns, of an expression, or of some of the rows."""

_DELIVERIES_CHECK = """
ALTER TABLE webhook_deliveries ADD CONSTRAINT webhook_deliveries_pending_if_waiting
CHECK (NOT waiting OR status = 'pending' AND next_attempt_at IS NOT NULL)
"""

_TAKE_QUESTION_PLACE = """
CREATE FUNCTION take_question_place(
    for_team bigint, for_user bigint, for_database bigint, asked text, by_model text,
    most_seconds double precision, place_seconds double precision, allowance integer, at_once integer
) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    today timestamptz := date_trunc('day', now(), 'UTC');
    place bigint;
BEGIN
    -- A place that a crash forgets is one of a question that nobody has an answer to.
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM pg_advisory_xact_lock(hashtextextended('headwater questions ' || for_team, 0));
    UPDATE query_executions SET finished_at = now(), counts = coalesce(counts, false),
           outcome = CASE WHEN verdict = 'allowed' THEN 'unknown' ELSE 'abandoned' END
    WHERE team_id = for_team AND outcome IS NULL AND created_at < now() - make_interval(secs => most_seconds);
    IF allowance <= (
        SELECT count(*) FROM query_executions
        WHERE team_id = for_team AND created_at >= today AND counts IS NOT FALSE AND (counts OR reserved_until > now())
    ) THEN
        RETURN NULL;
    END IF;
    IF at_once <= (SELECT count(*) FROM query_executions 
                    WHERE team_id = for_team AND outcome IS NULL AND (counts OR reserved_until > now())) THEN
        RETURN -1;
    END IF;
    INSERT INTO query_executions (team_id, user_id, database_id, question, model, reserved_until)
    VALUES (for_team, for_user, for_database, asked, by_model, now() + make_interval(secs => place_seconds))
    RETURNING id INTO place;
    RETURN place;
END $$
"""

_INSTALLATION = "INSERT INTO installation (id) VALUES (gen_random_uuid())"


class _Baseline(MigrationManager):
    """Piccolo runs a manager's own SQL before it makes the tables; this needs them."""

    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        for statement in (*_INDEXES, _DELIVERIES_CHECK, _TAKE_QUESTION_PLACE, _INSTALLATION):
            await DB.run_ddl(statement)


async def forwards() -> MigrationManager:
    manager = _Baseline(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    for table in _TABLES:
        _add(manager, table)
    return manager


def _add(manager: MigrationManager, table: type[Table]) -> None:
    name, tablename = table.__name__, table._meta.tablename
    manager.add_table(name, tablename)
    for column in table._meta.columns:
        manager.add_column(name, tablename, column._meta.name, column_class=type(column), params=column._meta.params)
    for constraint in table._meta.constraints:
        manager.add_constraint(name, tablename, constraint._meta.name, type(constraint), params=constraint._meta.params)
