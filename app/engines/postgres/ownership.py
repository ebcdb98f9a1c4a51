"""Taking a role out of a tenant's database: what it owns goes to the tenant, and its rights end.

`REASSIGN OWNED` and `DROP OWNED` do most of it, in one transaction each. Two things are done before them, some objects
at a time: what a hostile role may have by the million, because each object takes an entry in the lock table that the
whole server shares; and what they leave, because `DROP OWNED` keeps rights that somebody other than an object's owner
granted.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from app.engines.postgres.concurrent_drops import retrying_drops

_BATCH = 200
_OF_DATABASE = """
FROM pg_shdepend s CROSS JOIN LATERAL pg_identify_object(s.classid, s.objid, 0) o
WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND s.refclassid = 'pg_authid'::regclass AND s.refobjid = (SELECT oid FROM pg_roles WHERE rolname = $1)
"""
_KINDS = """
CASE o.type WHEN 'schema' THEN 'SCHEMA' WHEN 'function' THEN 'ROUTINE' WHEN 'procedure' THEN 'ROUTINE'
            WHEN 'aggregate' THEN 'ROUTINE' WHEN 'large object' THEN 'LARGE OBJECT' WHEN 'type' THEN 'TYPE'
            WHEN 'server' THEN 'FOREIGN SERVER' ELSE 'TABLE' END
"""
# A sequence goes with the table that it belongs to.
_OWNED = f"""
SELECT s.objid, o.schema, format('ALTER %s %s OWNER TO %I', upper(o.type), o.identity, $2::text) AS statement,
       format('%s %s', {_KINDS}, o.identity) AS place
{_OF_DATABASE} AND s.deptype = 'o' AND s.classid <> 'pg_default_acl'::regclass
  AND o.type IN ('table', 'view', 'materialized view', 'foreign table', 'sequence', 'function', 'procedure',
                 'aggregate', 'large object')
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE o.type = 'sequence' AND d.classid = 'pg_class'::regclass
                  AND d.objid = s.objid AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i'))
ORDER BY s.classid, s.objid LIMIT {_BATCH}
"""  # noqa: S608  constants
_SCHEMAS = f"SELECT DISTINCT o.schema {_OF_DATABASE} AND s.deptype = 'o' AND o.schema IS NOT NULL"
# Of these schemas the tenant may have taken the right from itself, or a freeze has.
_LACKING = """
SELECT format('GRANT %s ON SCHEMA %I TO %I', needed, nspname, $2::text) AS give,
       format('REVOKE %s ON SCHEMA %I FROM %I', needed, nspname, $2::text) AS take
FROM pg_namespace CROSS JOIN (VALUES ('CREATE'), ('USAGE')) AS n (needed)
WHERE nspname = ANY($1::name[]) AND NOT has_schema_privilege($2, oid, needed)
UNION ALL
SELECT format('GRANT CREATE ON DATABASE %I TO %I', current_database(), $2::text),
       format('REVOKE CREATE ON DATABASE %I FROM %I', current_database(), $2::text)
WHERE NOT has_database_privilege($2, current_database(), 'CREATE')
"""
# Only those who granted a right can take it, which are roles of the tenant.
_GRANTED = f"""
SELECT DISTINCT s.objid, r.rolname::text AS grantor,
       format('REVOKE ALL ON %s %s FROM %I CASCADE', {_KINDS}, o.identity, $1::text) AS statement
FROM (SELECT DISTINCT s.classid, s.objid {_OF_DATABASE} AND s.deptype = 'a'
        AND o.type IN ('table', 'table column', 'view', 'materialized view', 'foreign table', 'sequence', 'schema',
                       'function', 'procedure', 'aggregate', 'large object', 'type', 'server')
      ORDER BY 1, 2 LIMIT {_BATCH}) s
CROSS JOIN LATERAL pg_identify_object(s.classid, s.objid, 0) o
CROSS JOIN LATERAL (
    SELECT a.grantor FROM pg_class c, aclexplode(c.relacl) a
    WHERE s.classid = 'pg_class'::regclass AND c.oid = s.objid AND a.grantee = $2
    UNION SELECT a.grantor FROM pg_attribute c, aclexplode(c.attacl) a
    WHERE s.classid = 'pg_class'::regclass AND c.attrelid = s.objid AND a.grantee = $2
    UNION SELECT a.grantor FROM pg_namespace c, aclexplode(c.nspacl) a
    WHERE s.classid = 'pg_namespace'::regclass AND c.oid = s.objid AND a.grantee = $2
    UNION SELECT a.grantor FROM pg_proc c, aclexplode(c.proacl) a
    WHERE s.classid = 'pg_proc'::regclass AND c.oid = s.objid AND a.grantee = $2
    UNION SELECT a.grantor FROM pg_largeobject_metadata c, aclexplode(c.lomacl) a
    WHERE s.classid = 'pg_largeobject'::regclass AND c.oid = s.objid AND a.grantee = $2
    UNION SELECT a.grantor FROM pg_type c, aclexplode(c.typacl) a
    WHERE s.classid = 'pg_type'::regclass AND c.oid = s.objid AND a.grantee = $2
    UNION SELECT a.grantor FROM pg_foreign_server c, aclexplode(c.srvacl) a
    WHERE s.classid = 'pg_foreign_server'::regclass AND c.oid = s.objid AND a.grantee = $2
) g JOIN pg_roles r ON r.oid = g.grantor
WHERE r.rolname = $3 OR starts_with(r.rolname, $3 || '_')
ORDER BY s.objid
"""  # noqa: S608  the same


async def take_out(
    inside: Any, name: str, role: str, others: Sequence[str] | None = None, *, keeping: Sequence[str] = ()
) -> None:
    """Afterwards nothing in the database refers to the role. `inside` is the administrator's session there. After a
    crash the next call continues.

    `others` are the tenant's other roles if this one has less rights than the tenant: what it made, a function or a
    rule, comes to run with the tenant's, and so nobody else may use it until the tenant says so.

    `keeping` are the statements that give back, in the same transaction, rights outside of this database: DROP OWNED
    takes a role's rights on every database.
    """
    withheld = None if others is None else ", ".join(["PUBLIC", *(f'"{other}"' for other in others)])
    while await retrying_drops(partial(_reassign_batch, inside, name, role, withheld)):
        pass
    await retrying_drops(partial(_reassign_rest, inside, name, role))
    oid = await inside.fetchval("SELECT oid FROM pg_roles WHERE rolname = $1", role)
    # What is found again is left to DROP OWNED, and to the error of DROP ROLE.
    before: list[str] | None = None
    while (revoked := await retrying_drops(partial(_revoke_batch, inside, name, role, oid))) and revoked != before:
        before = revoked
    await inside.execute("; ".join([f'DROP OWNED BY "{role}"', *keeping]))


async def _reassign_batch(inside: Any, name: str, role: str, withheld: str | None) -> bool:
    """Gives a batch of what the role owns to the tenant; returns whether there was anything."""
    async with inside.transaction():
        rows = await inside.fetch(_OWNED, role, name)
        statements = [row["statement"] for row in rows]
        if withheld is not None:
            statements = [f"REVOKE ALL ON {row['place']} FROM {withheld} CASCADE" for row in rows] + statements
        await _as_owner_may(inside, name, [row["schema"] for row in rows], statements)
    return bool(rows)


async def _reassign_rest(inside: Any, name: str, role: str) -> None:
    async with inside.transaction():
        schemas = [row["schema"] for row in await inside.fetch(_SCHEMAS, role)]
        await _as_owner_may(inside, name, schemas, [f'REASSIGN OWNED BY "{role}" TO "{name}"'])


async def _as_owner_may(inside: Any, name: str, schemas: list[str], statements: list[str]) -> None:
    """Runs statements that give the tenant objects in these schemas. Only a role that may create in a schema can be
    given an object in it: inside this transaction the tenant may."""
    if not statements:
        return
    lacking = await inside.fetch(_LACKING, [schema for schema in schemas if schema is not None], name)
    await inside.execute("; ".join([*(row["give"] for row in lacking), *statements, *(row["take"] for row in lacking)]))


async def _revoke_batch(inside: Any, name: str, role: str, oid: int) -> list[str]:
    """Revokes a batch of the role's rights, and returns what it did."""
    async with inside.transaction():
        rows = await inside.fetch(_GRANTED, role, oid, name)
        for row in rows:
            await inside.execute(f'SET LOCAL ROLE "{row["grantor"]}"; {row["statement"]}; RESET ROLE')
    return [row["grantor"] + row["statement"] for row in rows]
