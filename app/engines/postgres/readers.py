"""The accounts of a PostgreSQL tenant that only read: the one for questions, and users.

They don't read through `pg_read_all_data`, which can read `pg_authid` and so every tenant's password verifier. Instead
the tenant itself grants its present objects, and its future ones by default privileges.
"""

from functools import partial
from typing import Any

from app.core.scram import verifier
from app.engines.naming import HELPER_SEPARATOR, literal
from app.engines.postgres.concurrent_drops import retrying_drops
from app.engines.postgres.statements import TEMP_FILE_LIMIT
from app.engines.querying import READER_PURPOSE, READER_SESSIONS

_ITERATIONS = 1
"""A low number, because each question logs in: the password is random, and more iterations add nothing to 190 bits."""

# Skips what it may read already, because this runs before each question. Some at a time, in a transaction each: a
# tenant may have millions of tables, and each that a transaction touches takes an entry in the server's lock table.
_BATCH = 200
_OWN = "nspname <> 'information_schema' AND NOT starts_with(nspname, 'pg_') AND pg_has_role($2, nspowner, 'USAGE')"
_SCHEMAS = f"""
SELECT oid, format('GRANT USAGE ON SCHEMA %I TO %I', nspname, $3::text) AS statement FROM pg_namespace
WHERE oid > $1 AND {_OWN} AND NOT has_schema_privilege($3, oid, 'USAGE') ORDER BY oid LIMIT {_BATCH}
"""  # noqa: S608  constants
_TABLES = f"""
SELECT c.oid, format('GRANT SELECT ON %s %I.%I TO %I', CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
                     nspname, relname, $3::text) AS statement
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid > $1 AND {_OWN} AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND pg_has_role($2, relowner, 'USAGE')
  AND NOT has_table_privilege($3, c.oid, 'SELECT') ORDER BY c.oid LIMIT {_BATCH}
"""  # noqa: S608  the same

_MAY_READ = """
SELECT EXISTS (SELECT FROM pg_default_acl d CROSS JOIN LATERAL aclexplode(d.defaclacl) a
               WHERE d.defaclrole = (SELECT oid FROM pg_roles WHERE rolname = $1)
                 AND a.grantee = (SELECT oid FROM pg_roles WHERE rolname = $2))
"""


def reader_name(name: str) -> str:
    return f"{name}{HELPER_SEPARATOR}{READER_PURPOSE}"


def write_role(name: str, password: str, *, exists: bool, temp_limit: bool) -> str:
    """The statements that write the account for questions, which the administrator runs. Its name shows whose helper it
    is; closing or removing the tenant closes or removes its helpers too."""
    role = reader_name(name)
    statements = [
        # What only a superuser may name is left out: it is off by default.
        f'{"ALTER" if exists else "CREATE"} ROLE "{role}" LOGIN NOCREATEDB NOCREATEROLE '
        f"CONNECTION LIMIT {READER_SESSIONS} "
        f"PASSWORD {literal(verifier(password, iterations=_ITERATIONS))}",
        f'GRANT CONNECT ON DATABASE "{name}" TO "{role}"',
        # A membership without rights and without SET ROLE. It lets pg_hba.conf check with `samerole` which database the
        # account may enter.
        f'GRANT "{name}" TO "{role}" WITH INHERIT FALSE, SET FALSE',
    ]
    if temp_limit:
        statements.append(f'ALTER ROLE "{role}" SET temp_file_limit = {literal(TEMP_FILE_LIMIT)}')
    return "; ".join(statements)


async def may_read(connection: Any, name: str, role: str) -> bool:
    """Whether the tenant's future tables will be readable to the role."""
    readable: bool = await connection.fetchval(_MAY_READ, name, role)
    return readable


async def grant_select(connection: Any, name: str, role: str) -> None:
    """Lets the role read everything, inside the tenant's database, with the tenant's rights, not the
    administrator's."""
    async with connection.transaction():
        await connection.execute(f'SET LOCAL ROLE "{name}"; {default_privileges(name, role)}')
    for statement in (_SCHEMAS, _TABLES):
        reached: int | None = 0
        while reached is not None:
            reached = await retrying_drops(partial(_grant_batch, connection, statement, reached, name, role))


def default_privileges(maker: str, role: str) -> str:
    """The statements that let the role read everything that `maker` makes from now on."""
    return "; ".join(
        f'ALTER DEFAULT PRIVILEGES FOR ROLE "{maker}" GRANT {privilege} TO "{role}"'
        for privilege in ("SELECT ON TABLES", "SELECT ON SEQUENCES", "USAGE ON SCHEMAS")
    )


async def _grant_batch(connection: Any, statement: str, after: int, name: str, role: str) -> int | None:
    """Grants on the batch of objects that follows `after`. Returns its last object; None when there is none."""
    async with connection.transaction():
        rows = await connection.fetch(statement, after, name, role)
        if rows:
            await connection.execute("; ".join([f'SET LOCAL ROLE "{name}"', *[row["statement"] for row in rows]]))
    return rows[-1]["oid"] if rows else None
