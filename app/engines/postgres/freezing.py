"""Taking a tenant's rights to write, inside its database, and restoring exactly those.

What is taken is first recorded in our own table in the tenant's database. The tenant may read that table, because its
own dump locks every table it finds.

Works on some objects at a time, in a transaction each: a tenant may have millions, and each object that a transaction
touches takes an entry in the lock table that the whole server shares.
"""

import secrets
from functools import partial
from typing import Any

from app.engines.postgres.concurrent_drops import retrying_drops

_BATCH = 200
"""The number of objects in a batch."""
_SCHEMA_PREFIX = "headwater_frozen_"
"""Followed by random characters, because a tenant could create a schema of any name that it can predict."""
_FIND_SCHEMA = """
SELECT nspname::text, obj_description(oid, 'pg_namespace') IS NOT NULL AS complete FROM pg_namespace
WHERE starts_with(nspname, $1) AND nspowner = (SELECT oid FROM pg_roles WHERE rolname = coalesce($2, current_user))
"""
# All rights to write to objects of the tenant: on tables, on columns, and to create in schemas.
_HELD = """
WITH owners AS (
    SELECT oid FROM pg_roles WHERE rolname = current_database() OR starts_with(rolname, current_database() || '_')
), held AS (
    SELECT c.oid AS object, 'table' AS kind, 0 AS number, a.grantee, a.privilege_type AS privilege, a.is_grantable
    FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
    WHERE c.relowner IN (SELECT oid FROM owners) AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't'
    UNION ALL
    SELECT c.oid, 'table', t.attnum, a.grantee, a.privilege_type, a.is_grantable
    FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) a
    WHERE c.relowner IN (SELECT oid FROM owners) AND NOT t.attisdropped AND t.attacl IS NOT NULL
    UNION ALL
    SELECT n.oid, 'schema', 0, a.grantee, a.privilege_type, a.is_grantable
    FROM pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
    WHERE n.nspowner IN (SELECT oid FROM owners)
)
"""
# Deleting from a table needs UPDATE on the columns of foreign keys that refer to it: to lock the referring rows, or to
# empty them with ON DELETE SET NULL. So those columns stay writable to the owner.
_KEYS = """
SELECT string_agg(DISTINCT quote_ident(t.attname), ', ') AS columns
FROM pg_constraint k JOIN pg_attribute t ON t.attrelid = k.conrelid AND t.attnum = ANY (k.conkey)
WHERE k.contype = 'f' AND k.conrelid = b.object AND b.kind = 'table'
"""
_SAVE = """
INSERT INTO "{schema}".withheld (object, kind, number, grantee, privilege, is_grantable)
SELECT object, kind, number, grantee, privilege, is_grantable FROM held
WHERE (privilege IN ('INSERT', 'UPDATE') AND kind = 'table' OR privilege = 'CREATE' AND kind = 'schema')
  -- What was written down once has lost its rights since, or holds those that are left to it.
  AND NOT EXISTS (SELECT FROM "{schema}".withheld w WHERE w.object = held.object AND w.kind = held.kind)
"""
# Of a batch `b` of objects.
_NAMES = """
SELECT format('%I.%I', n.nspname, c.relname) AS name, c.relowner AS owner
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = b.object AND b.kind = 'table'
UNION ALL SELECT format('%I', nspname), nspowner FROM pg_namespace WHERE oid = b.object AND b.kind = 'schema'
"""
_GRANTEE = "CASE WHEN {0} = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid({0})) END"
_TAKE = f"""
SELECT b.object, b.kind, format(CASE b.kind WHEN 'table' THEN 'REVOKE INSERT, UPDATE ON TABLE %s FROM %s CASCADE'
                                            ELSE 'REVOKE CREATE ON SCHEMA %s FROM %s CASCADE' END,
                                n.name, b.grantees)
       || coalesce('; GRANT UPDATE (' || k.columns || ') ON TABLE ' || n.name
                   || ' TO ' || quote_ident(pg_get_userbyid(n.owner)), '') AS statement
FROM (
    SELECT object, kind, string_agg(DISTINCT {_GRANTEE.format("grantee")}, ', ') AS grantees FROM "{{schema}}".withheld
    WHERE (object, kind) > ($1, $2) GROUP BY object, kind ORDER BY object, kind LIMIT {_BATCH}
) b LEFT JOIN LATERAL ({_NAMES}) n ON true LEFT JOIN LATERAL ({_KEYS}) k ON true
ORDER BY b.object, b.kind
"""  # noqa: S608  constants, and a name of our own making
# The first objects, with all rights held on each of them.
_BEGUN_WITH = f"""
SELECT DISTINCT object, kind FROM "{{schema}}".withheld ORDER BY object, kind LIMIT {_BATCH}
"""  # noqa: S608  the same
_GIVE_BACK = f"""
WITH b AS MATERIALIZED ({_BEGUN_WITH})
SELECT 0 AS turn, format('REVOKE UPDATE ON TABLE %s FROM %I', n.name, pg_get_userbyid(n.owner)) AS statement
FROM b CROSS JOIN LATERAL ({_NAMES}) n
WHERE b.kind = 'table' AND EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND conrelid = b.object)
UNION ALL
SELECT 1, format('GRANT %s%s ON %s %s TO %s%s', w.privilege, ' (' || quote_ident(t.attname) || ')', kind, n.name,
                 {_GRANTEE.format("w.grantee")}, CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
FROM b JOIN "{{schema}}".withheld w USING (object, kind) CROSS JOIN LATERAL ({_NAMES}) n
LEFT JOIN pg_attribute t ON t.attrelid = w.object AND t.attnum = w.number AND w.number <> 0
WHERE w.grantee = 0 OR EXISTS (SELECT FROM pg_roles WHERE oid = w.grantee)
ORDER BY 1
"""  # noqa: S608  the same
_FORGET = f"""
DELETE FROM "{{schema}}".withheld WHERE (object, kind) IN ({_BEGUN_WITH})
"""  # noqa: S608  the same
_GUARDED = "SELECT to_regprocedure('pg_catalog.headwater_large_objects(boolean)') IS NOT NULL"


async def is_begun(inside: Any) -> bool:
    """Whether anything was taken."""
    return await schema_of(inside) is not None


async def is_complete(inside: Any) -> bool:
    """Whether an earlier freeze was completed."""
    row = await inside.fetchrow(_FIND_SCHEMA, _SCHEMA_PREFIX, None)
    return row is not None and row["complete"]


async def mark_complete(inside: Any) -> None:
    schema = await schema_of(inside)
    await inside.execute(f"COMMENT ON SCHEMA \"{schema}\" IS 'What was taken while this database is over its limit'")


async def take_writes(inside: Any) -> None:
    """Takes all rights to write, except on the columns that deleting needs. `inside` is the administrator's session
    in the tenant's database. After a crash the next call continues."""
    async with inside.transaction():
        schema = await schema_of(inside) or await _make_schema(inside)
        await inside.execute(_HELD + _SAVE.format(schema=schema))
        await _switch_large_objects(inside, writable=False)
    reached: tuple[int, str] | None = (0, "")
    while reached is not None:
        reached = await retrying_drops(partial(_take_batch, inside, schema, reached))


async def give_writes(inside: Any) -> None:
    """Restores what was taken, for tables and roles that still exist. After a crash the next call continues, or a
    freeze takes it again: what was restored is no longer recorded."""
    schema = await schema_of(inside)
    if schema is not None:
        # From here on sessions may write, so the next freeze has to end them.
        await inside.execute(f'COMMENT ON SCHEMA "{schema}" IS NULL')
        while await retrying_drops(partial(_give_batch, inside, schema)):
            pass
    async with inside.transaction():
        if schema is not None:
            await inside.execute(f'DROP SCHEMA "{schema}" CASCADE')
        await _switch_large_objects(inside, writable=True)


async def give_large_objects(inside: Any) -> None:
    """Gives the right to write large objects to those who may have it now, and to nobody else. Call it when a read-only
    user was added or removed."""
    await _switch_large_objects(inside, writable=not await is_begun(inside))


async def _take_batch(inside: Any, schema: str, after: tuple[int, str]) -> tuple[int, str] | None:
    """Takes the rights on the batch of objects that follows `after`. Returns its last object; None when there is
    none."""
    async with inside.transaction():
        rows = await inside.fetch(_TAKE.format(schema=schema), *after)
        await _run_all(inside, [row["statement"] for row in rows if row["statement"] is not None])
    return (rows[-1]["object"], rows[-1]["kind"]) if rows else None


async def _give_batch(inside: Any, schema: str) -> bool:
    """Restores a batch; returns whether there was anything to restore."""
    async with inside.transaction():
        rows = await inside.fetch(_GIVE_BACK.format(schema=schema))
        await _run_all(inside, [row["statement"] for row in rows])
        deleted: str = await inside.execute(_FORGET.format(schema=schema))
    return deleted != "DELETE 0"


async def schema_of(inside: Any, administrator: str | None = None) -> str | None:
    """The name of our own schema in the database, if something was taken. `administrator` is the name of the
    administrator's role, where the session isn't the administrator's."""
    row = await inside.fetchrow(_FIND_SCHEMA, _SCHEMA_PREFIX, administrator)
    return row["nspname"] if row is not None else None


async def _make_schema(inside: Any) -> str:
    schema = _SCHEMA_PREFIX + secrets.token_hex(8)
    await inside.execute(
        f"""
        CREATE SCHEMA "{schema}"
        CREATE TABLE withheld (object oid, kind text, number smallint, grantee oid, privilege text,
                               is_grantable boolean, PRIMARY KEY (object, kind, number, grantee, privilege));
        GRANT USAGE ON SCHEMA "{schema}" TO PUBLIC;
        GRANT SELECT ON TABLE "{schema}".withheld TO PUBLIC
        """
    )
    return schema


async def _switch_large_objects(inside: Any, *, writable: bool) -> None:
    if await inside.fetchval(_GUARDED):
        await inside.execute(f"SELECT headwater_large_objects({'true' if writable else 'false'})")


async def _run_all(inside: Any, written: list[str]) -> None:
    if written:
        await inside.execute("; ".join(written))
