"""Verifying a database by using it as its tenant."""

from typing import Any

import asyncpg

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
    # One transaction, so that a crash leaves no table behind.
    await session.execute(
        "BEGIN; CREATE TABLE public.headwater_check (n integer); INSERT INTO public.headwater_check VALUES (42)"
    )
    if await session.fetchval("SELECT n FROM public.headwater_check") != 42:
        raise EngineError(f"{tenant.name} doesn't read what it wrote")
    await session.execute("DROP TABLE public.headwater_check; COMMIT")
