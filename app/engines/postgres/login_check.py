"""Verifying a database by using it as its tenant."""

from typing import Any

import asyncpg

from app.core.ids import new_uuid
from app.engines.base import EngineError, Tenant


async def take_schema(session: Any) -> bool:
    """Gives the tenant the schema `public`, by a function of the template. Returns False if the database has no such
    function or schema."""
    try:
        await session.execute("SELECT pg_catalog.headwater_take_public()")
    except (asyncpg.UndefinedFunctionError, asyncpg.InvalidSchemaNameError):
        return False
    return True


async def write_and_read(session: Any, tenant: Tenant) -> None:
    """Raises `EngineError` when the tenant doesn't read what it wrote."""
    # The tenant may be in already: it can't take a name that it doesn't know.
    table = f"public.headwater_{new_uuid().hex}_check"
    # One transaction, so that a crash leaves no table behind.
    await session.execute(f"BEGIN; CREATE TABLE {table} (n integer); INSERT INTO {table} VALUES (42)")  # noqa: S608
    if await session.fetchval(f"SELECT n FROM {table}") != 42:  # noqa: S608 - our own name
        raise EngineError(f"{tenant.name} doesn't read what it wrote")
    await session.execute(f"DROP TABLE {table}; COMMIT")
