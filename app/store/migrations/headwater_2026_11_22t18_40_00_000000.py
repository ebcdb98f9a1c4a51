"""Partitions that are dropped only when their table's rows may go."""

from piccolo.apps.migrations.auto.migration_manager import MigrationManager

from app.store.engine import DB

ID = "2026-11-22T18:40:00:000000"
VERSION = "1.38.0"
DESCRIPTION = "partitions that are dropped only when their table's rows may go"

# `kept_at_least` is made when rights are renewed, right after the migrations: app/store/rights.py.
_DROP = """
CREATE OR REPLACE FUNCTION drop_oldest_partition(parent text, before timestamptz) RETURNS text
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
        <= least(before, now() - public.kept_at_least(parent))
    ORDER BY p.relname LIMIT 1;
    IF part IS NOT NULL THEN
        EXECUTE format('DROP TABLE public.%I', part);
    END IF;
    RETURN part;
END $$
"""


class _WithFunction(MigrationManager):
    async def run(self, backwards: bool = False) -> None:
        await super().run(backwards)
        await DB.run_ddl(_DROP)


async def forwards() -> MigrationManager:
    return _WithFunction(migration_id=ID, app_name="headwater", description=DESCRIPTION)
