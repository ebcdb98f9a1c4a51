"""Giving everything that one tenant owns in a database to another, with the rights and policies that name it."""

from collections.abc import Sequence
from typing import Any

from app.engines.postgres import ownership

_SCHEMAS = """
SELECT format('ALTER SCHEMA %I OWNER TO %I', nspname, $2::text) AS statement
FROM pg_namespace WHERE nspowner = (SELECT oid FROM pg_roles WHERE rolname = $1) ORDER BY oid LIMIT 200
"""
_POLICIES = """
SELECT format('ALTER POLICY %I ON %I.%I TO %s', p.polname, n.nspname, c.relname, (
           SELECT string_agg(CASE r.oid WHEN 0 THEN 'PUBLIC' WHEN o.oid THEN quote_ident($2)
                                        ELSE quote_ident(pg_get_userbyid(r.oid)) END, ', ')
           FROM unnest(p.polroles) AS r (oid)
       )) AS statement
FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_roles o ON o.rolname = $1 AND o.oid = ANY (p.polroles) ORDER BY p.oid LIMIT 200
"""
# Large objects have them since PostgreSQL 18.
_KINDS = """
CASE d.defaclobjtype WHEN 'r' THEN 'TABLES' WHEN 'S' THEN 'SEQUENCES' WHEN 'f' THEN 'FUNCTIONS' WHEN 'T' THEN 'TYPES'
                     WHEN 'n' THEN 'SCHEMAS' WHEN 'L' THEN 'LARGE OBJECTS' END
"""
_KNOWN = "d.defaclobjtype IN ('r', 'S', 'f', 'T', 'n', 'L')"
# What a role's default rights are: a list in place of the server's own, or, for one schema, what is added to those.
_DEFAULTS = f"""
SELECT d.oid, 0 AS turn, format('ALTER DEFAULT PRIVILEGES FOR ROLE %I REVOKE ALL ON %s FROM PUBLIC, %I',
                                $2::text, {_KINDS}, $2::text) AS statement
FROM pg_default_acl d WHERE d.defaclrole = (SELECT oid FROM pg_roles WHERE rolname = $1) AND d.defaclnamespace = 0
  AND {_KNOWN}
UNION ALL
SELECT d.oid, 1, format('ALTER DEFAULT PRIVILEGES FOR ROLE %I%s GRANT %s ON %s TO %s%s', $2::text,
                        CASE WHEN n.oid IS NULL THEN '' ELSE format(' IN SCHEMA %I', n.nspname) END,
                        a.privilege_type, {_KINDS},
                        CASE WHEN a.grantee = 0 THEN 'PUBLIC' WHEN r.rolname = $1 THEN quote_ident($2)
                             ELSE quote_ident(r.rolname) END,
                        CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
FROM pg_default_acl d LEFT JOIN pg_namespace n ON n.oid = d.defaclnamespace CROSS JOIN LATERAL aclexplode(d.defaclacl) a
LEFT JOIN pg_roles r ON r.oid = a.grantee
WHERE d.defaclrole = (SELECT oid FROM pg_roles WHERE rolname = $1) AND {_KNOWN}
  AND (a.grantee = 0 OR r.rolname = $1 OR starts_with(r.rolname, 'pg_') OR starts_with(r.rolname, $2::text || '_u'))
ORDER BY 1, 2
"""  # noqa: S608  constants


async def give_all(inside: Any, database: str, old: str, new: str, keeping: Sequence[str] = ()) -> None:
    """Afterwards `new` owns what `old` owned, and nothing in the database names `old`. `inside` is the administrator's
    session there, who is a member of both. `keeping`: see `ownership.take_out`. After a crash the next call
    continues."""
    await inside.execute(f'GRANT CREATE ON DATABASE "{database}" TO "{new}"')
    # Schemas first: only who may create in one can be given what is in it.
    for statement in (_SCHEMAS, _POLICIES):
        while rows := await inside.fetch(statement, old, new):
            await inside.execute("; ".join(row["statement"] for row in rows))
    for row in await inside.fetch(_DEFAULTS, old, new):
        await inside.execute(row["statement"])
    await ownership.take_out(inside, new, old, keeping=keeping)
