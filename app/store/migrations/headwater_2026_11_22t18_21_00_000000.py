"""Functions that make and drop partitions with the rights of the role that migrates."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-22T18:21:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "functions that make and drop partitions"

_NAME = """
CREATE FUNCTION partition_name(parent text, since timestamptz) RETURNS text
LANGUAGE sql STABLE SET timezone = 'UTC' RETURN parent || to_char(since, '"_p"YYYYMMDD')
"""

# Attached, not created as a partition: that would lock out all readers of the table. Nothing that the database grants
# by default on new tables holds for a partition.
_ENSURE = """
CREATE FUNCTION ensure_partition(parent text, since timestamptz, until timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET timezone = 'UTC'
SET lock_timeout = '5s' AS $$
DECLARE
    part text := public.partition_name(parent, since);
    other oid;
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
    EXECUTE format('ALTER TABLE public.%I ATTACH PARTITION public.%I FOR VALUES FROM (%L) TO (%L)',
                   parent, part, since, until);
    RETURN true;
END $$
"""

_DROP = """
CREATE FUNCTION drop_oldest_partition(parent text, before timestamptz) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET timezone = 'UTC'
SET lock_timeout = '1s' AS $$
DECLARE
    part text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('partitions of ' || parent, 0));
    SELECT p.relname INTO part FROM pg_inherits i
    JOIN pg_class c ON c.oid = i.inhparent AND c.relkind = 'p' AND pg_get_userbyid(c.relowner) = current_user
    JOIN pg_class p ON p.oid = i.inhrelid
    WHERE c.oid = to_regclass(format('public.%I', parent))
    AND substring(pg_get_expr(p.relpartbound, p.oid) FROM 'TO \\(''([^'']+)''\\)')::timestamptz
        <= least(before, now() - interval '1 day')
    ORDER BY p.relname LIMIT 1;
    IF part IS NOT NULL THEN
        EXECUTE format('DROP TABLE public.%I', part);
    END IF;
    RETURN part;
END $$
"""
_STATEMENTS = (
    _NAME,
    _ENSURE,
    _DROP,
    "REVOKE ALL ON FUNCTION ensure_partition(text, timestamptz, timestamptz) FROM PUBLIC",
    "REVOKE ALL ON FUNCTION drop_oldest_partition(text, timestamptz) FROM PUBLIC",
)


class _WithFunctions(MigrationManager):
    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        for statement in _STATEMENTS:
            await DB.run_ddl(statement)


async def forwards() -> MigrationManager:
    return _WithFunctions(migration_id=ID, app_name="headwater", description=DESCRIPTION)
