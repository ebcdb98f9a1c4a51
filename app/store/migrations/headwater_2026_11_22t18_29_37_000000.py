"""The ledger of usage, and the meters that feed it.

What counts is written by triggers, so that no statement changes a state, a size or a backup past the meters, neither
ours nor an operator's: in the change's own transaction and round trip. Decision 50.

The meters' clock is our own database's and ticks once a second, so that all sums are of integers.
"""

from decimal import Decimal

from piccolo.apps.migrations.auto.migration_manager import MigrationManager
from piccolo.columns import UUID, BigInt, BigSerial, Boolean, Integer, Numeric, Text, Timestamptz
from piccolo.constraints import Unique
from piccolo.table import Table

from app.store.engine import DB

ID = "2026-11-22T18:29:37:000000"
VERSION = "1.38.0"
DESCRIPTION = "the ledger of usage and its meters"


class UsageClock(Table, tablename="usage_clock"):
    id = BigSerial(primary_key=True)
    period_seconds = Integer(default=3600)
    closed_through = Timestamptz()


class UsageMeter(Table, tablename="usage_meters"):
    id = BigSerial(primary_key=True)
    database_uuid = UUID(unique=True)
    team_id = BigInt(null=True, default=None)
    plan = Text()
    region = Text()
    starts_at = Timestamptz()
    since = Timestamptz()
    at = Timestamptz()
    running = Boolean()
    kept = Boolean(default=True)
    storage_bytes = BigInt()
    backup_bytes = BigInt()
    runtime_seconds = BigInt()
    storage_byte_seconds = Numeric(default=Decimal(0))
    backup_byte_seconds = Numeric(default=Decimal(0))


class UsagePart(Table, tablename="usage_parts"):
    id = BigSerial(primary_key=True)
    database_uuid = UUID()
    team_id = BigInt()
    plan = Text()
    region = Text()
    starts_at = Timestamptz()
    ends_at = Timestamptz()
    since = Timestamptz()
    runtime_seconds = BigInt()
    storage_byte_seconds = Numeric(default=Decimal(0))
    backup_byte_seconds = Numeric(default=Decimal(0))
    counted_once = Unique([database_uuid, since])


_LEDGER = """
CREATE TABLE usage_periods (
    database_uuid uuid NOT NULL, team_id bigint NOT NULL, plan text NOT NULL, region text NOT NULL,
    starts_at timestamptz NOT NULL, ends_at timestamptz NOT NULL, since timestamptz NOT NULL,
    runtime_seconds bigint NOT NULL, storage_byte_seconds numeric NOT NULL, backup_byte_seconds numeric NOT NULL,
    PRIMARY KEY (database_uuid, starts_at, since)
) PARTITION BY RANGE (starts_at)
"""
_INDEXES = (
    "CREATE INDEX usage_periods_of_team ON usage_periods (team_id, starts_at)",
    "CREATE INDEX usage_parts_to_close ON usage_parts (ends_at)",
    "CREATE INDEX usage_meters_of_team ON usage_meters (team_id)",
)

_NOW = """
CREATE FUNCTION usage_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT date_trunc('second', clock_timestamp())
$$
"""
_PERIOD_OF = """
CREATE FUNCTION usage_period_of(moment timestamptz, period integer) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT to_timestamp(floor(extract(epoch FROM moment)::bigint / period) * period)
$$
"""

# What the meter has counted from `since` to `upto`, by periods: the last of them is the one that is not over by then.
_SPLIT = """
CREATE FUNCTION usage_split(meter usage_meters, upto timestamptz, period integer) RETURNS TABLE (
    starts_at timestamptz, ends_at timestamptz, since timestamptz,
    runtime_seconds bigint, storage_byte_seconds numeric, backup_byte_seconds numeric, is_over boolean
) LANGUAGE sql STABLE AS $$
    WITH moments AS (
        SELECT extract(epoch FROM meter.at)::bigint AS counted,
               greatest(extract(epoch FROM meter.at)::bigint, extract(epoch FROM upto)::bigint) AS present
    ), pieces AS (
        SELECT n = counted / period AS first, n < present / period AS is_over,
               to_timestamp(n * period) AS starts_at, to_timestamp((n + 1) * period) AS ends_at,
               least(present, (n + 1) * period) - greatest(counted, n * period) AS seconds
        FROM moments, generate_series(counted / period, present / period) AS n
    )
    SELECT CASE WHEN p.first THEN meter.starts_at ELSE p.starts_at END, p.ends_at,
           CASE WHEN p.first THEN meter.since ELSE p.starts_at END,
           CASE WHEN p.first THEN meter.runtime_seconds ELSE 0 END + CASE WHEN meter.running THEN p.seconds ELSE 0 END,
           CASE WHEN p.first THEN meter.storage_byte_seconds ELSE 0 END + meter.storage_bytes::numeric * p.seconds,
           CASE WHEN p.first THEN meter.backup_byte_seconds ELSE 0 END + meter.backup_bytes::numeric * p.seconds,
           p.is_over
    FROM pieces p
$$
"""

# The clock is read with the meters locked: their transactions take turns. It never runs back into what is closed.
# Nearly always no period has ended since the last count.
_ADVANCE = """
CREATE FUNCTION usage_advance(meters bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    clock usage_clock;
    upto timestamptz;
BEGIN
    PERFORM FROM usage_meters WHERE id = any(meters) ORDER BY id FOR UPDATE;
    SELECT * INTO STRICT clock FROM usage_clock;
    upto := greatest(usage_now(), clock.closed_through);
    UPDATE usage_meters m SET at = upto,
           runtime_seconds = m.runtime_seconds
               + CASE WHEN m.running THEN extract(epoch FROM upto - m.at)::bigint ELSE 0 END,
           storage_byte_seconds = m.storage_byte_seconds
               + m.storage_bytes::numeric * extract(epoch FROM upto - m.at)::bigint,
           backup_byte_seconds = m.backup_byte_seconds
               + m.backup_bytes::numeric * extract(epoch FROM upto - m.at)::bigint
    WHERE m.id = any(meters) AND m.at < upto AND m.at >= usage_period_of(upto, clock.period_seconds);
    IF NOT EXISTS (SELECT FROM usage_meters WHERE id = any(meters) AND at < upto) THEN
        RETURN;
    END IF;
    WITH pieces AS MATERIALIZED (
        SELECT m.id, m.database_uuid, m.team_id, m.plan, m.region, s.*
        FROM usage_meters m CROSS JOIN LATERAL usage_split(m, upto, clock.period_seconds) s
        WHERE m.id = any(meters) AND m.at < upto
    ), parts AS (
        INSERT INTO usage_parts (database_uuid, team_id, plan, region, starts_at, ends_at, since,
                                 runtime_seconds, storage_byte_seconds, backup_byte_seconds)
        SELECT p.database_uuid, p.team_id, p.plan, p.region, p.starts_at, p.ends_at, p.since,
               p.runtime_seconds, p.storage_byte_seconds, p.backup_byte_seconds
        FROM pieces p
        WHERE p.is_over AND p.team_id IS NOT NULL
          AND (p.runtime_seconds > 0 OR p.storage_byte_seconds > 0 OR p.backup_byte_seconds > 0)
    )
    UPDATE usage_meters m SET at = upto, starts_at = p.starts_at, since = p.since,
           runtime_seconds = p.runtime_seconds, storage_byte_seconds = p.storage_byte_seconds,
           backup_byte_seconds = p.backup_byte_seconds
    FROM pieces p WHERE p.id = m.id AND NOT p.is_over;
END $$
"""

_ADD = """
CREATE FUNCTION usage_add_meter(of_database uuid, of_team bigint, with_plan text, in_region text, on_host boolean)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    clock usage_clock;
    moment timestamptz;
    meter bigint;
BEGIN
    SELECT * INTO STRICT clock FROM usage_clock;
    moment := greatest(usage_now(), clock.closed_through);
    LOOP
        INSERT INTO usage_meters (database_uuid, team_id, plan, region, starts_at, since, at, running, kept,
                                  storage_bytes, backup_bytes, runtime_seconds)
        VALUES (of_database, of_team, with_plan, in_region, usage_period_of(moment, clock.period_seconds),
                moment, moment, false, on_host, 0, 0, 0)
        ON CONFLICT (database_uuid) DO NOTHING RETURNING id INTO meter;
        EXIT WHEN meter IS NOT NULL;
        SELECT id INTO meter FROM usage_meters WHERE database_uuid = of_database;
        EXIT WHEN meter IS NOT NULL;
    END LOOP;
    RETURN meter;
END $$
"""

# It begins with the first `active`. Whose it is changes when it leaves the warm pool: what it used there is nobody's.
# A create from the pool waits for this, so the usual case, in which no period has ended, takes one update.
_OF_DATABASES = """
CREATE FUNCTION usage_of_databases() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    meter usage_meters;
    clock usage_clock;
    upto timestamptz;
    passed bigint;
BEGIN
    SELECT * INTO meter FROM usage_meters WHERE database_uuid = NEW.uuid FOR UPDATE;
    IF NOT FOUND THEN
        IF NEW.status <> 'active' THEN
            RETURN NULL;
        END IF;
        PERFORM usage_add_meter(NEW.uuid, NEW.team_id, NEW.plan, NEW.region, true);
        SELECT * INTO STRICT meter FROM usage_meters WHERE database_uuid = NEW.uuid FOR UPDATE;
    END IF;
    SELECT * INTO STRICT clock FROM usage_clock;
    upto := greatest(usage_now(), clock.closed_through, meter.at);
    IF meter.at < usage_period_of(upto, clock.period_seconds) THEN
        PERFORM usage_advance(ARRAY[meter.id]);
        SELECT * INTO STRICT meter FROM usage_meters WHERE id = meter.id;
        upto := meter.at;
    END IF;
    passed := extract(epoch FROM upto - meter.at)::bigint;
    meter.runtime_seconds := meter.runtime_seconds + CASE WHEN meter.running THEN passed ELSE 0 END;
    meter.storage_byte_seconds := meter.storage_byte_seconds + meter.storage_bytes::numeric * passed;
    meter.backup_byte_seconds := meter.backup_byte_seconds + meter.backup_bytes::numeric * passed;
    IF (meter.team_id, meter.plan, meter.region) IS DISTINCT FROM (NEW.team_id, NEW.plan, NEW.region) THEN
        INSERT INTO usage_parts (database_uuid, team_id, plan, region, starts_at, ends_at, since,
                                 runtime_seconds, storage_byte_seconds, backup_byte_seconds)
        SELECT meter.database_uuid, meter.team_id, meter.plan, meter.region, meter.starts_at,
               usage_period_of(upto, clock.period_seconds) + make_interval(secs => clock.period_seconds), meter.since,
               meter.runtime_seconds, meter.storage_byte_seconds, meter.backup_byte_seconds
        WHERE meter.team_id IS NOT NULL
          AND (meter.runtime_seconds > 0 OR meter.storage_byte_seconds > 0 OR meter.backup_byte_seconds > 0);
        meter.since := upto;
        meter.runtime_seconds := 0;
        meter.storage_byte_seconds := 0;
        meter.backup_byte_seconds := 0;
    END IF;
    UPDATE usage_meters SET team_id = NEW.team_id, plan = NEW.plan, region = NEW.region, at = upto,
           since = meter.since, runtime_seconds = meter.runtime_seconds,
           storage_byte_seconds = meter.storage_byte_seconds, backup_byte_seconds = meter.backup_byte_seconds,
           running = NEW.status = 'active', kept = NEW.destroyed_at IS NULL,
           storage_bytes = CASE WHEN NEW.destroyed_at IS NULL THEN storage_bytes ELSE 0 END
    WHERE id = meter.id;
    RETURN NULL;
END $$
"""
# For all rows of a statement at once. A measurement that comes after the end counts for nothing.
_OF_SIZES = """
CREATE FUNCTION usage_of_sizes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    meters bigint[];
BEGIN
    IF TG_OP = 'INSERT' THEN
        SELECT array_agg(m.id) INTO meters
        FROM new_sizes n JOIN databases d ON d.id = n.database_id JOIN usage_meters m ON m.database_uuid = d.uuid
        WHERE n.storage_bytes <> 0;
    ELSE
        SELECT array_agg(m.id) INTO meters
        FROM new_sizes n JOIN old_sizes o ON o.id = n.id
        JOIN databases d ON d.id = n.database_id JOIN usage_meters m ON m.database_uuid = d.uuid
        WHERE n.storage_bytes <> o.storage_bytes;
    END IF;
    IF meters IS NOT NULL THEN
        PERFORM usage_advance(meters);
        UPDATE usage_meters m SET storage_bytes = n.storage_bytes
        FROM new_sizes n JOIN databases d ON d.id = n.database_id
        WHERE m.id = any(meters) AND m.database_uuid = d.uuid AND m.kept;
    END IF;
    RETURN NULL;
END $$
"""
_OF_BACKUPS = """
CREATE FUNCTION usage_of_backups() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    one backups := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
    before bigint := CASE WHEN TG_OP <> 'INSERT' AND OLD.status = 'completed' THEN OLD.stored_bytes END;
    after bigint := CASE WHEN TG_OP <> 'DELETE' AND NEW.status = 'completed' THEN NEW.stored_bytes END;
    added bigint := coalesce(after, 0) - coalesce(before, 0);
    meter bigint;
BEGIN
    IF added = 0 THEN
        RETURN NULL;
    END IF;
    LOOP
        meter := coalesce(
            (SELECT id FROM usage_meters WHERE database_uuid = one.database_uuid),
            usage_add_meter(one.database_uuid, one.team_id, one.plan, one.region, EXISTS (
                SELECT FROM databases WHERE uuid = one.database_uuid AND destroyed_at IS NULL
            ))
        );
        PERFORM usage_advance(ARRAY[meter]);
        UPDATE usage_meters SET backup_bytes = greatest(0, backup_bytes + added) WHERE id = meter;
        -- Unless it was just taken away because nothing was left.
        EXIT WHEN FOUND;
    END LOOP;
    RETURN NULL;
END $$
"""
_TRIGGERS = (
    "CREATE TRIGGER usage_of_new_database AFTER INSERT ON databases FOR EACH ROW"
    " WHEN (NEW.status = 'active') EXECUTE FUNCTION usage_of_databases()",
    "CREATE TRIGGER usage_of_database AFTER UPDATE OF status, team_id, plan, region, destroyed_at ON databases"
    " FOR EACH ROW WHEN ((OLD.status, OLD.team_id, OLD.plan, OLD.region, OLD.destroyed_at)"
    " IS DISTINCT FROM (NEW.status, NEW.team_id, NEW.plan, NEW.region, NEW.destroyed_at))"
    " EXECUTE FUNCTION usage_of_databases()",
    "CREATE TRIGGER usage_of_first_sizes AFTER INSERT ON database_usage REFERENCING NEW TABLE AS new_sizes"
    " FOR EACH STATEMENT EXECUTE FUNCTION usage_of_sizes()",
    "CREATE TRIGGER usage_of_sizes AFTER UPDATE ON database_usage REFERENCING OLD TABLE AS old_sizes"
    " NEW TABLE AS new_sizes FOR EACH STATEMENT EXECUTE FUNCTION usage_of_sizes()",
    "CREATE TRIGGER usage_of_backup AFTER INSERT OR DELETE OR UPDATE OF status, stored_bytes ON backups"
    " FOR EACH ROW EXECUTE FUNCTION usage_of_backups()",
)

_BEGIN = "INSERT INTO usage_clock (closed_through) VALUES (usage_period_of(usage_now(), 3600))"
# What is there already is metered from now on.
_PRESENT = """
INSERT INTO usage_meters (database_uuid, team_id, plan, region, starts_at, since, at, running, kept, storage_bytes,
                          backup_bytes, runtime_seconds)
SELECT found.uuid, found.team_id, found.plan, found.region, usage_period_of(usage_now(), 3600), usage_now(),
       usage_now(), found.running, found.kept, found.storage_bytes, found.backup_bytes, 0
FROM (
    SELECT DISTINCT ON (uuid) uuid, team_id, plan, region, running, kept, storage_bytes, coalesce((
        SELECT sum(stored_bytes) FROM backups WHERE database_uuid = uuid AND status = 'completed'
    ), 0)::bigint AS backup_bytes
    FROM (
        SELECT d.uuid, d.team_id, d.plan, d.region, d.status = 'active' AS running, true AS kept,
               coalesce(u.storage_bytes, 0) AS storage_bytes
        FROM databases d LEFT JOIN database_usage u ON u.database_id = d.id
        WHERE d.destroyed_at IS NULL AND d.purpose IS NULL
          AND (d.status IN ('active', 'paused') OR d.status = 'deleted' AND d.provisioned_at IS NOT NULL)
        UNION ALL
        SELECT database_uuid, team_id, plan, region, false, false, 0 FROM backups WHERE status = 'completed'
    ) there
    ORDER BY uuid, kept DESC
) found
"""


class _WithFunctions(MigrationManager):
    """Piccolo runs a manager's own SQL before it makes the tables; this needs them."""

    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        functions = (_NOW, _PERIOD_OF, _SPLIT, _ADVANCE, _ADD, _OF_DATABASES, _OF_SIZES, _OF_BACKUPS)
        for statement in (_LEDGER, *_INDEXES, *functions, *_TRIGGERS, _BEGIN, _PRESENT):
            await DB.run_ddl(statement)


async def forwards() -> MigrationManager:
    manager = _WithFunctions(migration_id=ID, app_name="headwater", description=DESCRIPTION)
    for table in (UsageClock, UsageMeter, UsagePart):
        _add(manager, table)
    return manager


def _add(manager: MigrationManager, table: type[Table]) -> None:
    name, tablename = table.__name__, table._meta.tablename
    manager.add_table(name, tablename)
    for column in table._meta.columns:
        manager.add_column(name, tablename, column._meta.name, column_class=type(column), params=column._meta.params)
    for constraint in table._meta.constraints:
        manager.add_constraint(name, tablename, constraint._meta.name, type(constraint), params=constraint._meta.params)
