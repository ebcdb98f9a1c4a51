"""What a member of the warm pool used is nobody's, so that the claim of one takes its meter over with one statement."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-23T17:45:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "claims of the warm pool take the meter over with one statement"

# As the function was, behind the case of a claim. It counts nothing and splits no period: the meter begins anew. Its
# own row says up to when it is counted, also where it has waited for somebody who counted it on.
_OF_DATABASES = """
CREATE OR REPLACE FUNCTION usage_of_databases() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    meter usage_meters;
    clock usage_clock;
    upto timestamptz;
    passed bigint;
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.team_id IS NULL AND NEW.team_id IS NOT NULL AND NEW.destroyed_at IS NULL THEN
        UPDATE usage_meters m SET team_id = NEW.team_id, plan = NEW.plan, region = NEW.region,
               at = greatest(c.moment, m.at), since = greatest(c.moment, m.at),
               starts_at = usage_period_of(greatest(c.moment, m.at), c.period_seconds),
               runtime_seconds = 0, storage_byte_seconds = 0, backup_byte_seconds = 0,
               running = NEW.status = 'active', kept = true
        FROM (SELECT greatest(usage_now(), closed_through) AS moment, period_seconds FROM usage_clock) c
        WHERE m.database_uuid = NEW.uuid AND m.team_id IS NULL;
        IF FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
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


class _WithFunction(MigrationManager):
    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        await DB.run_ddl(_OF_DATABASES)


async def forwards() -> MigrationManager:
    return _WithFunction(migration_id=ID, app_name="headwater", description=DESCRIPTION)
