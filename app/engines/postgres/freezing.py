"""Taking a tenant's right to write, from inside its database, and giving back exactly what was taken.

What is taken is written down in a table of ours beside the tenant's, in the transaction that takes it. The tenant may
read that table: its own dump locks every table it finds.
"""

import secrets
from typing import Any

_SCHEMA_PREFIX = "headwater_frozen_"
"""Random after it, because a tenant could make a schema of any name that it can foresee."""
_FIND_SCHEMA = """
SELECT nspname::text, obj_description(oid, 'pg_namespace') IS NOT NULL AS complete FROM pg_namespace
WHERE starts_with(nspname, $1) AND nspowner = (SELECT oid FROM pg_roles WHERE rolname = current_user)
"""
# Every right to write that is held on something of the tenant's: on a table, on a column, to create in a schema.
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
# Deleting from a table asks its foreign keys' own columns whether they may be updated: to lock the referring rows, or
# to empty them with ON DELETE SET NULL. So those columns stay writable to the owner.
_KEYS = """
SELECT k.conrelid, string_agg(DISTINCT quote_ident(t.attname), ', ') AS columns
FROM pg_constraint k JOIN pg_attribute t ON t.attrelid = k.conrelid AND t.attnum = ANY (k.conkey)
WHERE k.contype = 'f' GROUP BY k.conrelid
"""
_SAVE = """
INSERT INTO "{schema}".withheld (object, kind, number, grantee, privilege, is_grantable)
SELECT object, kind, number, grantee, privilege, is_grantable FROM held
WHERE (privilege IN ('INSERT', 'UPDATE') AND kind = 'table' OR privilege = 'CREATE' AND kind = 'schema')
  -- What was written down once has lost its rights since, or holds those that are left to it.
  AND NOT EXISTS (SELECT FROM "{schema}".withheld w WHERE w.object = held.object AND w.kind = held.kind)
"""
_NAMES = """
SELECT c.oid AS object, 'table' AS kind, format('%I.%I', n.nspname, c.relname) AS name, c.relowner AS owner
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
UNION ALL SELECT oid, 'schema', format('%I', nspname), nspowner FROM pg_namespace
"""
_GRANTEE = "CASE WHEN {0} = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid({0})) END"
_TAKE = f"""
SELECT format(CASE kind WHEN 'table' THEN 'REVOKE INSERT, UPDATE ON TABLE %s FROM %s CASCADE'
                        ELSE 'REVOKE CREATE ON SCHEMA %s FROM %s CASCADE' END,
              n.name, string_agg(DISTINCT {_GRANTEE.format("w.grantee")}, ', '))
       || coalesce('; GRANT UPDATE (' || k.columns || ') ON TABLE ' || n.name
                   || ' TO ' || quote_ident(pg_get_userbyid(n.owner)), '')
FROM "{{schema}}".withheld w JOIN ({_NAMES}) n USING (object, kind)
LEFT JOIN ({_KEYS}) k ON k.conrelid = w.object AND w.kind = 'table'
GROUP BY kind, n.name, n.owner, k.columns
"""  # noqa: S608  constants, and a name of our own making
_GIVE_BACK = f"""
SELECT DISTINCT 0 AS turn, format('REVOKE UPDATE ON TABLE %s FROM %I', n.name, pg_get_userbyid(n.owner)) AS statement
FROM "{{schema}}".withheld w JOIN ({_NAMES}) n USING (object, kind)
WHERE kind = 'table' AND EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND conrelid = w.object)
UNION ALL
SELECT 1, format('GRANT %s%s ON %s %s TO %s%s', w.privilege, ' (' || quote_ident(t.attname) || ')', kind, n.name,
                 {_GRANTEE.format("w.grantee")}, CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
FROM "{{schema}}".withheld w JOIN ({_NAMES}) n USING (object, kind)
LEFT JOIN pg_attribute t ON t.attrelid = w.object AND t.attnum = w.number AND w.number <> 0
WHERE w.grantee = 0 OR EXISTS (SELECT FROM pg_roles WHERE oid = w.grantee)
ORDER BY 1
"""  # noqa: S608  the same
_GUARDED = "SELECT to_regprocedure('pg_catalog.headwater_large_objects(boolean)') IS NOT NULL"


async def is_begun(inside: Any) -> bool:
    """Whether anything was taken."""
    return await _schema(inside) is not None


async def is_complete(inside: Any) -> bool:
    """Whether an earlier freeze came to its end."""
    row = await inside.fetchrow(_FIND_SCHEMA, _SCHEMA_PREFIX)
    return row is not None and row["complete"]


async def mark_complete(inside: Any) -> None:
    schema = await _schema(inside)
    await inside.execute(f"COMMENT ON SCHEMA \"{schema}\" IS 'What was taken while this database is over its limit'")


async def take_writes(inside: Any) -> None:
    """Takes every right to write but the columns that deleting itself needs. `inside` is the administrator's session
    in the tenant's database."""
    async with inside.transaction():
        schema = await _schema(inside) or await _make_schema(inside)
        await inside.execute(_HELD + _SAVE.format(schema=schema))
        await _run_all(inside, await inside.fetch(_TAKE.format(schema=schema)))
        await _switch_large_objects(inside, writable=False)


async def give_writes(inside: Any) -> None:
    """Gives back what was taken, to those tables and roles that are still there."""
    async with inside.transaction():
        schema = await _schema(inside)
        if schema is not None:
            rows = await inside.fetch(_GIVE_BACK.format(schema=schema))
            await _run_all(inside, [(row["statement"],) for row in rows])
            await inside.execute(f'DROP SCHEMA "{schema}" CASCADE')
        await _switch_large_objects(inside, writable=True)


async def _schema(inside: Any) -> str | None:
    row = await inside.fetchrow(_FIND_SCHEMA, _SCHEMA_PREFIX)
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


async def _run_all(inside: Any, rows: list[Any]) -> None:
    if rows:
        await inside.execute("; ".join(row[0] for row in rows))
