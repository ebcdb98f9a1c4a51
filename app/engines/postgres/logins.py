"""The roles that log in beside a tenant's own, or in its place after a rotation.

A login belongs to the tenant's role and becomes it when it logs in, so that everything is made by one owner, whoever
logs in. A user that only reads is a member without any right of it.
"""

import re
from typing import Any

import asyncpg
import structlog

from app.core.scram import verifier
from app.engines.base import Access, Login
from app.engines.naming import HELPER_SEPARATOR, literal
from app.engines.postgres.statements import TEMP_FILE_LIMIT

_MAX_SETTINGS = 200
_MAX_CHARACTERS = 10_000
# Not the role, which is ours to set, nor what needs a privilege, nor a library that ends every login.
_SETTINGS = f"""
SELECT s.setdatabase <> 0 AS in_database, split_part(entry, '=', 1) AS name,
       substr(entry, strpos(entry, '=') + 1) AS value
FROM pg_db_role_setting s CROSS JOIN LATERAL unnest(s.setconfig) AS entry
WHERE s.setrole = (SELECT oid FROM pg_roles WHERE rolname = $1)
  AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = $2))
  AND split_part(entry, '=', 1) NOT IN ('role', 'session_authorization', 'local_preload_libraries')
  AND EXISTS (SELECT FROM pg_settings p WHERE p.context = 'user' AND p.name = split_part(entry, '=', 1))
  AND length(entry) <= {_MAX_CHARACTERS} LIMIT {_MAX_SETTINGS}
"""  # noqa: S608  constants
_DATABASE_SETTINGS = f"""
SELECT r.rolname::text AS role, split_part(entry, '=', 1) AS name, substr(entry, strpos(entry, '=') + 1) AS value
FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole CROSS JOIN LATERAL unnest(s.setconfig) AS entry
WHERE s.setdatabase = (SELECT oid FROM pg_database WHERE datname = $1)
  AND (r.rolname = $1 OR starts_with(r.rolname, $1 || '{HELPER_SEPARATOR}'))
  AND length(entry) <= {_MAX_CHARACTERS} LIMIT {_MAX_SETTINGS}
"""  # noqa: S608  the same
_LISTS = {"search_path", "temp_tablespaces"}
"""Settings that are lists of names, which PostgreSQL stores as one text (`GUC_LIST_QUOTE`)."""
_NAME = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^\s,"]+))\s*(?:,|\Z)')

log = structlog.get_logger(__name__)


def write_login(name: str, login: Login, *, exists: bool, closed: bool, connections: int, temp_limit: bool) -> str:
    """Creates the role of a login or a user, or corrects it. `closed`: it may not log in yet. `connections`: its limit,
    -1 for none."""
    role = f'"{login.name}"'
    statements = [
        f"{'ALTER' if exists else 'CREATE'} ROLE {role} {'NOLOGIN' if closed else 'LOGIN'} NOCREATEDB NOCREATEROLE "
        f"CONNECTION LIMIT {connections:d} PASSWORD {literal(verifier(login.password))}",
        *(_reading(name, role, exists=exists) if login.access is Access.READ_ONLY else _writing(name, role)),
        f'ALTER ROLE {role} IN DATABASE "{name}" RESET role',
    ]
    if exists:
        statements += [
            f"ALTER ROLE {role} RESET local_preload_libraries",
            f'ALTER ROLE {role} IN DATABASE "{name}" RESET local_preload_libraries',
        ]
    if temp_limit:
        statements.append(f"ALTER ROLE {role} SET temp_file_limit = {literal(TEMP_FILE_LIMIT)}")
    return "; ".join(statements)


def _writing(name: str, role: str) -> list[str]:
    """All rights come with the membership. None may be passed on: it has no ADMIN option."""
    return [
        f'GRANT "{name}" TO {role} WITH INHERIT TRUE, SET TRUE',
        f"ALTER ROLE {role} SET role = {literal(name)}",
        f"ALTER ROLE {role} RESET default_transaction_read_only",
    ]


def _reading(name: str, role: str, *, exists: bool) -> list[str]:
    statements = [
        # A membership without rights and without SET ROLE. It lets pg_hba.conf check with `samerole` which database
        # the role may enter.
        f'GRANT "{name}" TO {role} WITH INHERIT FALSE, SET FALSE',
        f'GRANT CONNECT ON DATABASE "{name}" TO {role}',
        # It may change that. What it may not do is in its rights.
        f"ALTER ROLE {role} SET default_transaction_read_only = on",
    ]
    return [*statements, f"ALTER ROLE {role} RESET role"] if exists else statements


async def copy_settings(connection: Any, name: str, source: str, target: str) -> None:
    """Gives a login the settings that the tenant made for the former one, such as its search path. One that the server
    doesn't take any more is left out."""
    for row in await connection.fetch(_SETTINGS, source, name):
        await _set(connection, target, name if row["in_database"] else None, row)


async def copy_database_settings(connection: Any, old: str, new: str) -> None:
    """Gives the roles of the tenant `old` the same settings for the database `new` that they have for the tenant's own.
    Other roles can make settings for that database too, as many as they like, but can't enter it."""
    for row in await connection.fetch(_DATABASE_SETTINGS, old):
        await _set(connection, row["role"], new, row)


async def _set(connection: Any, role: str, database: str | None, row: Any) -> None:
    where = "" if database is None else f' IN DATABASE "{database}"'
    value = _list(row["value"]) if row["name"] in _LISTS else literal(row["value"])
    try:
        await connection.execute(f'ALTER ROLE "{role}"{where} SET {row["name"]} TO {value}')
    except (asyncpg.DataError, asyncpg.SyntaxOrAccessError) as error:
        log.info("setting_left_out", role=role, setting=row["name"], reason=type(error).__name__)


def _list(value: str) -> str:
    """The names in a setting, read as PostgreSQL reads it, and each quoted anew: a tenant may have stored any text."""
    names = [
        (quoted.replace('""', '"') if quoted else plain.lower())
        for quoted, plain in _NAME.findall(value)
        if quoted or plain
    ]
    return ", ".join(map(literal, names)) or "''"
