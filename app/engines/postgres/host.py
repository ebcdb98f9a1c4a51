"""Inspecting a PostgreSQL server: whether it can hold tenants, and what it leaves open to every account."""

import re
from typing import Any

from app.engines.base import EngineError, HostFacts
from app.engines.hosts import sessions_for_tenants
from app.engines.postgres.guard import EXTENSIONS, IS_GUARDED, IS_RECENT, TEMPLATE

OLDEST = 16
"""In older versions CREATEROLE is equivalent to a superuser, and can't give away a schema without more rights."""
TOO_OLD = f"PostgreSQL {OLDEST} or later is needed"

_FACTS = f"""
SELECT current_setting('server_version') AS version,
       current_setting('server_version_num')::int / 10000 AS major,
       current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
           - coalesce(current_setting('reserved_connections', true), '0')::int AS room,
       pg_is_in_recovery() AS replica,
       r.rolsuper, r.rolsuper OR r.rolcreatedb AS createdb, r.rolsuper OR r.rolcreaterole AS createrole,
       r.rolsuper OR r.rolbypassrls AS bypasses_policies,
       has_parameter_privilege('temp_file_limit', 'SET') AS temp_limit,
       current_setting('max_prepared_transactions')::int AS prepared,
       current_setting('ssl')::bool AS ssl,
       current_setting('log_min_error_statement') NOT IN ('log', 'fatal', 'panic')
           OR current_setting('log_min_messages') NOT IN ('log', 'fatal', 'panic')
           OR current_setting('log_statement') <> 'none' AS logs_statements,
       {IS_GUARDED} AS guarded, {IS_RECENT} AS recent,
       (SELECT pg_encoding_to_char(encoding) = 'UTF8' OR datcollate IN ('C', 'POSIX')
        FROM pg_database WHERE datname = 'template0') AS utf8,
       ARRAY(SELECT DISTINCT name::text FROM pg_available_extension_versions
             WHERE trusted AND name ~ '^pl(perl|tcl|python)' ORDER BY 1) AS languages
FROM pg_roles r WHERE r.rolname = current_user
"""  # noqa: S608  constants
# Trusted extensions need only CREATE on the database, and so do those that they require.
_EXTENSIONS = f"""
SELECT a.name::text FROM pg_available_extensions a
JOIN pg_available_extension_versions v ON v.name = a.name AND v.version = a.default_version
WHERE v.trusted AND NOT EXISTS (
    SELECT FROM unnest(v.requires) AS needed (name)
    WHERE NOT EXISTS (SELECT FROM pg_available_extension_versions n WHERE n.name = needed.name AND n.trusted)
) UNION {EXTENSIONS} ORDER BY 1
"""  # noqa: S608  constants
_OPEN = """
SELECT datname::text FROM pg_database
WHERE datname IN ('postgres', 'template1')
  AND (has_database_privilege('public', oid, 'CONNECT') OR has_database_privilege('public', oid, 'TEMPORARY'))
ORDER BY 1
"""


async def inspect(connection: Any) -> HostFacts:
    facts = await connection.fetchrow(_FACTS)
    missing = [
        sentence
        for lacking, sentence in (
            (facts["major"] < OLDEST, f"{TOO_OLD}; this is {facts['version']}"),
            (not facts["createdb"], "the administrator lacks CREATEDB"),
            (not facts["createrole"], "the administrator lacks CREATEROLE"),
            (facts["replica"], "this server is a read-only replica"),
            (not facts["utf8"], "template0 has a locale that can't hold UTF-8"),
        )
        if lacking
    ]
    if missing:
        raise EngineError("; ".join(missing))
    return HostFacts(
        flavour="postgres",
        version=facts["version"],
        max_connections=sessions_for_tenants(facts["room"]),
        shortcomings=(
            *_shortcomings(facts),
            *[_still_open(name) for name in await _open_databases(connection)],
        ),
    )


def _shortcomings(facts: Any) -> list[str]:
    checks = (
        (
            not facts["temp_limit"],
            "The administrator may not set temp_file_limit, so one tenant's query can fill the disk with temporary "
            "files. GRANT SET ON PARAMETER temp_file_limit lets it.",
        ),
        (
            not facts["bypasses_policies"],
            "The administrator lacks BYPASSRLS, so databases with FORCE ROW LEVEL SECURITY can't be backed up. As a "
            "superuser, ALTER ROLE … BYPASSRLS.",
        ),
        (
            facts["prepared"] > 0,
            "max_prepared_transactions is above 0: a forgotten prepared transaction holds back vacuum.",
        ),
        (
            not facts["guarded"],
            f"There is no finished {TEMPLATE}: a tenant over its storage limit can grant itself the right to write "
            "again, and is stopped only when it grows. A superuser makes it: see docs/operating.md.",
        ),
        (
            facts["guarded"] and not facts["recent"],
            f"{TEMPLATE} is of an earlier version: what a login makes after SET ROLE NONE is its own until it is "
            "dropped, and the two logins of a rotation may have some connections beside the limit. See "
            "docs/operating.md.",
        ),
        (
            facts["logs_statements"],
            "Its log has tenants' statements that fail, and what their errors quote: secret values of blueprints too. "
            "log_min_messages = log and log_min_error_statement = panic, with log_statement = none, keep them out.",
        ),
        (not facts["ssl"], "TLS is off: passwords' proofs and data cross the network in the clear."),
        (
            bool(facts["languages"]),
            f"Any tenant can install {', '.join(facts['languages'])}. Remove these packages from the host.",
        ),
        (
            facts["rolsuper"],
            "The administrator is a superuser. A role with CREATEDB and CREATEROLE is enough and can do less harm.",
        ),
    )
    return [sentence for lacking, sentence in checks if lacking]


async def extensions(connection: Any) -> list[str]:
    """Extensions that a tenant can create by itself, and those that its database has from the template."""
    return [row["name"] for row in await connection.fetch(_EXTENSIONS)]


def lacks_extension(name: str) -> str:
    return (
        f"New databases lack the extension {name}: the server doesn't have it, or a superuser has yet to make it in "
        f"{TEMPLATE}: see docs/operating.md."
    )


async def harden(connection: Any) -> tuple[str, ...]:
    for name in await _open_databases(connection):
        # It only warns when the administrator doesn't own the database, so the result is checked afterwards.
        await connection.execute(
            f'GRANT CONNECT ON DATABASE "{name}" TO CURRENT_USER; '
            f'REVOKE CONNECT, TEMPORARY ON DATABASE "{name}" FROM PUBLIC'
        )
    return tuple(_still_open(name) for name in await _open_databases(connection))


async def _open_databases(connection: Any) -> list[str]:
    return [row["datname"] for row in await connection.fetch(_OPEN)]


def _still_open(name: str) -> str:
    return (
        f"Every tenant can connect to the database {name}: as its owner or a superuser, "
        f"REVOKE CONNECT, TEMPORARY ON DATABASE {name} FROM PUBLIC."
    )


def major_of(version: str) -> int:
    """The major number of a server's version, such as `18.6` or `19beta1`."""
    found = re.match(r"\d+", version)
    return int(found[0]) if found else 0
