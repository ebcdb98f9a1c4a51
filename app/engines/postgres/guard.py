"""The template of tenant databases, made by a superuser, which keeps a frozen tenant from restoring its own rights.

A server without the template works too: then a tenant over its storage limit can grant itself what was taken, and is
paused when it grows.
"""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import asyncpg

from app.engines.postgres import extensions as optional

TEMPLATE = "headwater_template"
SCRIPT = Path(__file__).with_name("guard.sql")
_COMMENT = "headwater guard 3"
"""A new number makes prepared servers be prepared again."""

IS_GUARDED = f"""
EXISTS (SELECT FROM pg_database d JOIN pg_roles o ON o.oid = d.datdba
        WHERE d.datname = '{TEMPLATE}' AND d.datistemplate AND NOT d.datallowconn AND o.rolsuper)
"""
"""Whether a superuser's template exists and is complete."""
IS_RECENT = f"""
EXISTS (SELECT FROM pg_database WHERE datname = '{TEMPLATE}'
        AND starts_with(shobj_description(oid, 'pg_database'), '{_COMMENT}'))
"""
"""Whether the template is of this version."""
EXTENSIONS = f"""
SELECT unnest(string_to_array(split_part(shobj_description(oid, 'pg_database'), '; extensions ', 2), ',')) AS name
FROM pg_database WHERE datname = '{TEMPLATE}' AND {IS_GUARDED}
"""  # noqa: S608  constants
"""The template's contents, from its comment: nobody can look inside, and only its owner can write a comment."""
_IS_CURRENT = f"""
SELECT {IS_GUARDED} AND shobj_description(oid, 'pg_database') = $1 FROM pg_database
WHERE datname = '{TEMPLATE}'
"""  # noqa: S608  a constant
_AVAILABLE = "SELECT name::text FROM pg_available_extensions WHERE name = ANY($1::text[]) ORDER BY 1"

_CATALOGS = """
SELECT format('%I.%I', n.nspname, c.relname) AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND NOT c.relisshared AND n.nspname IN ('pg_catalog', 'information_schema')
"""
"""Rewriting them saves pages, a quarter of the files' size, which would be copied for every tenant."""


async def make_template(
    superuser: Any,
    target: dict[str, Any],
    connect: Callable[..., Awaitable[Any]] = asyncpg.connect,
    *,
    extensions: Sequence[str] = (),
) -> None:
    """Makes the template, or finishes one that an earlier call began, with those of the extensions that the server
    has and no others. `superuser` is a connection outside any transaction; `target` has the arguments of `connect`
    for the same server and user. Raises `EngineError` for an extension that tenants may not have."""
    optional.check_names(extensions)
    present = ",".join(row["name"] for row in await superuser.fetch(_AVAILABLE, list(extensions)))
    comment = f"{_COMMENT}; extensions {present}" if present else _COMMENT
    current = await superuser.fetchrow(_IS_CURRENT, comment)
    if current is not None and current[0]:
        return
    if current is None:
        await superuser.execute(f"CREATE DATABASE {TEMPLATE} TEMPLATE template0 ENCODING 'UTF8'")
    await superuser.execute(f"ALTER DATABASE {TEMPLATE} IS_TEMPLATE false ALLOW_CONNECTIONS true")
    await superuser.execute(f"REVOKE ALL ON DATABASE {TEMPLATE} FROM PUBLIC")
    inside = await connect(**{**target, "database": TEMPLATE})
    try:
        await inside.execute(SCRIPT.read_text())
        await inside.execute("SELECT set_config('headwater.extensions', $1, false)", present)
        await inside.execute(optional.SCRIPT.read_text())
        for row in await inside.fetch(_CATALOGS):
            await inside.execute(f"VACUUM (FULL, FREEZE) {row['name']}")
    finally:
        await inside.close()
    # Closed, because a session in it would block every CREATE DATABASE; marked last.
    await superuser.execute(f"ALTER DATABASE {TEMPLATE} ALLOW_CONNECTIONS false")
    await superuser.execute(f"ALTER DATABASE {TEMPLATE} IS_TEMPLATE true")
    await superuser.execute(f"COMMENT ON DATABASE {TEMPLATE} IS '{comment}'")
