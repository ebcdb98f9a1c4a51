"""The SELECT-only account of a PostgreSQL tenant.

Not through `pg_read_all_data`, which reads `pg_authid`, and with it every tenant's password verifier. The tenant itself
grants what it has, and by default privileges what it will have.
"""

from typing import Any

from app.engines.naming import HELPER_SEPARATOR, literal
from app.engines.postgres.scram import verifier
from app.engines.postgres.statements import TEMP_FILE_LIMIT
from app.engines.querying import READER_PURPOSE, READER_SESSIONS

_ITERATIONS = 1
"""A login for each question: the password is random, and repeating its hash adds nothing to 190 bits."""

_SCHEMAS = """
SELECT quote_ident(nspname) FROM pg_namespace
WHERE nspname <> 'information_schema' AND NOT starts_with(nspname, 'pg_')
  AND pg_has_role(current_user, nspowner, 'USAGE') ORDER BY 1
"""


def reader_name(name: str) -> str:
    return f"{name}{HELPER_SEPARATOR}{READER_PURPOSE}"


def write_role(name: str, password: str, *, exists: bool, temp_limit: bool) -> str:
    """By the administrator. The name alone tells whose helper it is, and whoever closes or removes the tenant does
    so to its helpers too."""
    role = reader_name(name)
    statements = [
        # What only a superuser may name is left out: it is off unless given.
        f'{"ALTER" if exists else "CREATE"} ROLE "{role}" LOGIN NOCREATEDB NOCREATEROLE '
        f"CONNECTION LIMIT {READER_SESSIONS} "
        f"PASSWORD {literal(verifier(password, iterations=_ITERATIONS))}",
        f'GRANT CONNECT ON DATABASE "{name}" TO "{role}"',
        # A membership that gives nothing: neither rights nor SET ROLE. It tells pg_hba.conf, by `samerole`, whose
        # database this one may enter.
        f'GRANT "{name}" TO "{role}" WITH INHERIT FALSE, SET FALSE',
    ]
    if temp_limit:
        statements.append(f'ALTER ROLE "{role}" SET temp_file_limit = {literal(TEMP_FILE_LIMIT)}')
    return "; ".join(statements)


async def grant_select(connection: Any, name: str) -> None:
    """Inside the tenant's database, with the tenant's rights and not the administrator's."""
    role = reader_name(name)
    async with connection.transaction():
        await connection.execute(f'SET LOCAL ROLE "{name}"')
        await connection.execute(
            f'ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO "{role}"; '
            f'ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO "{role}"'
        )
        for (schema,) in await connection.fetch(_SCHEMAS):
            await connection.execute(
                f'GRANT USAGE ON SCHEMA {schema} TO "{role}"; GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO "{role}"'
            )
