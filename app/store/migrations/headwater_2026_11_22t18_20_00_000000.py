"""Who did what: events, and the chain of seals over them."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import BigInt, BigSerial, Bytea, Integer, Timestamptz
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB

ID = "2026-11-22T18:20:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "the audit log"


class AuditSeal(Table, tablename="audit_seals"):
    id = BigInt(primary_key=True)
    at = Timestamptz()
    batch = BigInt()
    last_id = BigInt()
    events = Integer()
    leaves_hash = Bytea()
    previous = Bytea()
    hash = Bytea()


class AuditRefusal(Table, tablename="audit_refusals"):
    id = BigSerial(primary_key=True)
    user_id = BigInt()
    hour = Timestamptz()
    team_id = BigInt(null=True, default=None)
    refusals = Integer()
    one_an_hour = Unique([user_id, hour])


# A transaction that reads a batch's number has its own number by then: whoever has closed the batch waits for all
# transactions with a number up to that moment, and for no other.
_BATCH = """
CREATE FUNCTION audit_batch() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_current_xact_id();
    RETURN coalesce(pg_sequence_last_value('audit_batches'::regclass), 0);
END $$
"""
_EVENTS = """
CREATE TABLE audit_events (
    id bigint NOT NULL DEFAULT nextval('audit_events_id'),
    at timestamptz NOT NULL DEFAULT now(),
    batch bigint NOT NULL DEFAULT audit_batch(),
    actor_kind text NOT NULL,
    user_id bigint,
    api_key_id bigint,
    actor_name text,
    action text NOT NULL,
    object text NOT NULL,
    subject_id text,
    team_id bigint,
    address text,
    request_id text,
    outcome text NOT NULL,
    error text,
    changes jsonb,
    PRIMARY KEY (id, at)
) PARTITION BY RANGE (at)
"""
_LEAVES = """
CREATE TABLE audit_leaves (id bigint NOT NULL, at timestamptz NOT NULL, leaves bytea NOT NULL, PRIMARY KEY (id, at))
PARTITION BY RANGE (at)
"""
# Those to begin with. Workers make the next ones; what none of them is for is kept by the one for all else.
_PARTITIONS = """
DO $$
DECLARE
    parent text;
    month timestamptz;
BEGIN
    FOREACH parent IN ARRAY ARRAY['audit_events', 'audit_leaves'] LOOP
        EXECUTE format('CREATE TABLE %I PARTITION OF %I DEFAULT', parent || '_other', parent);
        FOR month IN
            SELECT (date_trunc('month', now() AT TIME ZONE 'UTC') + n * interval '1 month') AT TIME ZONE 'UTC'
            FROM generate_series(0, 2) n
        LOOP
            EXECUTE format(
                'CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)',
                parent || to_char(month AT TIME ZONE 'UTC', '"_p"YYYYMMDD'), parent, month,
                (month AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC');
        END LOOP;
    END LOOP;
END $$
"""
_STATEMENTS = (
    "CREATE SEQUENCE audit_batches",
    "CREATE SEQUENCE audit_events_id",
    _BATCH,
    _EVENTS,
    "CREATE INDEX audit_events_to_seal ON audit_events (batch, id)",
    "CREATE INDEX audit_events_of_team ON audit_events (team_id, at, id)",
    "CREATE INDEX audit_events_of_subject ON audit_events (team_id, object, subject_id, at, id)",
    "CREATE INDEX audit_events_of_action ON audit_events (team_id, action, at, id)",
    "CREATE INDEX audit_events_of_user ON audit_events (team_id, user_id, at, id)",
    "CREATE INDEX audit_events_of_key ON audit_events (team_id, api_key_id, at, id)",
    "CREATE INDEX audit_events_of_no_user ON audit_events (team_id, actor_kind, at, id) WHERE user_id IS NULL",
    _LEAVES,
    _PARTITIONS,
)


class _WithEvents(MigrationManager):
    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        for statement in _STATEMENTS:
            await DB.run_ddl(statement)


async def forwards() -> MigrationManager:
    manager = _WithEvents(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    for table in (AuditSeal, AuditRefusal):
        _add(manager, table)
    return manager


def _add(manager: MigrationManager, table: type[Table]) -> None:
    name, tablename = table.__name__, table._meta.tablename
    manager.add_table(name, tablename)
    for column in table._meta.columns:
        manager.add_column(name, tablename, column._meta.name, column_class=type(column), params=column._meta.params)
    for constraint in table._meta.constraints:
        manager.add_constraint(name, tablename, constraint._meta.name, type(constraint), params=constraint._meta.params)
