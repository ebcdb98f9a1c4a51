"""A PostgreSQL server that says of its file system what is not so: its statements are the same, and copy blocks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from tests.servers import RunningServer

_FACT = "headwater_host"
_SAID = "SELECT coalesce(quote_literal(shobj_description(oid, 'pg_authid')), 'NULL') FROM pg_roles WHERE rolname = $1"


@asynccontextmanager
async def said_to_share(server: RunningServer) -> AsyncIterator[None]:
    """Its file system shares blocks, it says, until the end of the block."""
    root = await asyncpg.connect(server.admin_dsn)
    try:
        before = await root.fetchval(_SAID, _FACT)
        if before is None:
            await root.execute(f"CREATE ROLE {_FACT}")
        await root.execute(f"COMMENT ON ROLE {_FACT} IS 'its file system shares blocks'")
        try:
            yield
        finally:
            await root.execute(f"DROP ROLE {_FACT}" if before is None else f"COMMENT ON ROLE {_FACT} IS {before}")
    finally:
        await root.close()
