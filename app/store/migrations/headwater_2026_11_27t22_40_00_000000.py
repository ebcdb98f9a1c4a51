"""Partitions that take over the rows that the one for all else has kept for them."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-27T22:40:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "partitions that take over rows that came before them"

# A partition can't be attached while the default one has rows of its time: those that came before it was made. They are
# moved as they are. Meanwhile the table itself is locked, and before its default partition, as by whoever reads or
# writes it: a statement planned before the new partition is there would find its rows in neither. A row that comes
# after the look for such rows makes the attaching fail; the next call finds it.
_ENSURE = """
CREATE OR REPLACE FUNCTION ensure_partition(parent text, since timestamptz, until timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET timezone = 'UTC'
SET lock_timeout = '5s' AS $$
DECLARE
    part text := public.partition_name(parent, since);
    other oid;
    remainder regclass;
    moment name;
    moving boolean := false;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('partitions of ' || parent, 0));
    -- Not to_regclass, which after that wait may still remember that there was none.
    IF EXISTS (SELECT FROM pg_class WHERE relname = part AND relnamespace = 'public'::regnamespace) THEN
        RETURN false;
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_class WHERE oid = to_regclass(format('public.%I', parent)) AND relkind = 'p'
        AND pg_get_userbyid(relowner) = current_user
    ) THEN
        RAISE EXCEPTION '% is no partitioned table of ours', parent;
    END IF;
    SELECT p.partdefid::regclass, a.attname INTO remainder, moment FROM pg_partitioned_table p
    JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
    WHERE p.partrelid = to_regclass(format('public.%I', parent)) AND p.partdefid <> 0;
    IF remainder IS NOT NULL THEN
        EXECUTE format('SELECT EXISTS (SELECT FROM %1$s WHERE %2$I >= $1 AND %2$I < $2)', remainder, moment)
        INTO moving USING since, until;
    END IF;
    IF moving THEN
        EXECUTE format('LOCK TABLE ONLY public.%I IN ACCESS EXCLUSIVE MODE', parent);
    END IF;
    EXECUTE format(
        'CREATE TABLE public.%I (LIKE public.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES'
        ' INCLUDING GENERATED INCLUDING STORAGE INCLUDING COMPRESSION)', part, parent);
    FOR other IN
        SELECT DISTINCT a.grantee FROM pg_class c, aclexplode(c.relacl) a
        WHERE c.oid = to_regclass(format('public.%I', part)) AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON public.%I FROM %s', part,
                       CASE other WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(other)) END);
    END LOOP;
    IF moving THEN
        EXECUTE format(
            'WITH moved AS (DELETE FROM %1$s WHERE %2$I >= $1 AND %2$I < $2 RETURNING *)'
            ' INSERT INTO public.%3$I SELECT * FROM moved', remainder, moment, part)
        USING since, until;
    END IF;
    EXECUTE format('ALTER TABLE public.%I ATTACH PARTITION public.%I FOR VALUES FROM (%L) TO (%L)',
                   parent, part, since, until);
    RETURN true;
END $$
"""


class _WithFunction(MigrationManager):
    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        await DB.run_ddl(_ENSURE)


async def forwards() -> MigrationManager:
    return _WithFunction(migration_id=ID, app_name="headwater", description=DESCRIPTION)
