"""The template of tenant databases, made by a superuser, with what keeps a frozen tenant from thawing itself.

A server without the template serves too: then a tenant over its storage limit can grant itself what was taken
from it, and is paused when it grows.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg

TEMPLATE = "headwater_template"
SCRIPT = Path(__file__).with_name("guard.sql")
_COMMENT = "headwater guard 2"
"""Another number has servers that were prepared before prepared anew."""

IS_GUARDED = f"""
EXISTS (SELECT FROM pg_database d JOIN pg_roles o ON o.oid = d.datdba
        WHERE d.datname = '{TEMPLATE}' AND d.datistemplate AND NOT d.datallowconn AND o.rolsuper)
"""
"""Whether a superuser's template is there and finished."""
_IS_CURRENT = f"""
SELECT {IS_GUARDED} AND shobj_description(oid, 'pg_database') = '{_COMMENT}' FROM pg_database
WHERE datname = '{TEMPLATE}'
"""  # noqa: S608  a constant

_CATALOGS = """
SELECT format('%I.%I', n.nspname, c.relname) AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND NOT c.relisshared AND n.nspname IN ('pg_catalog', 'information_schema')
"""
"""Rewritten, they have fewer pages, and a quarter of the files is gone: each is copied for every tenant."""


async def make_template(
    superuser: Any, target: dict[str, Any], connect: Callable[..., Awaitable[Any]] = asyncpg.connect
) -> None:
    """Makes the template, or finishes one that an earlier call began. `superuser` is a connection outside any
    transaction; `target` is what `connect` needs to reach the same server as the same user."""
    current = await superuser.fetchrow(_IS_CURRENT)
    if current is not None and current[0]:
        return
    if current is None:
        await superuser.execute(f"CREATE DATABASE {TEMPLATE} TEMPLATE template0 ENCODING 'UTF8'")
    await superuser.execute(f"ALTER DATABASE {TEMPLATE} IS_TEMPLATE false ALLOW_CONNECTIONS true")
    await superuser.execute(f"REVOKE ALL ON DATABASE {TEMPLATE} FROM PUBLIC")
    inside = await connect(**{**target, "database": TEMPLATE})
    try:
        await inside.execute(SCRIPT.read_text())
        for row in await inside.fetch(_CATALOGS):
            await inside.execute(f"VACUUM (FULL, FREEZE) {row['name']}")
    finally:
        await inside.close()
    # Closed, because a session in it would hold up every CREATE DATABASE; marked last.
    await superuser.execute(f"ALTER DATABASE {TEMPLATE} ALLOW_CONNECTIONS false")
    await superuser.execute(f"ALTER DATABASE {TEMPLATE} IS_TEMPLATE true")
    await superuser.execute(f"COMMENT ON DATABASE {TEMPLATE} IS '{_COMMENT}'")
