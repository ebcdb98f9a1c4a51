"""What the tests of MySQL's and MariaDB's dumps share."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from app.engines.base import EngineError, Tenant
from app.engines.dumping import Content, DumpFormat
from app.engines.mysql.dumps.tools import find_tool
from app.engines.mysql.flavours import flavour_of
from tests.engines.harness import EngineHost, as_root, session_of
from tests.support.waiting import until


async def dumped(
    host: EngineHost, tenant: Tenant, meanwhile: Callable[[], Awaitable[None]] | None = None
) -> tuple[list[bytes], DumpFormat, list[Content]]:
    """`meanwhile` runs after the dump's moment, before anything of it is read."""
    async with host.adapter.dumping(tenant) as dump:
        if meanwhile is not None:
            await meanwhile()
        chunks = [chunk async for chunk in dump.chunks()]
        return chunks, dump.format, await dump.contents()


async def skip_without_tool(host: EngineHost) -> None:
    """On a machine without the client programs of this server's flavour."""
    [(version,)] = await as_root(host, "SELECT VERSION()")
    try:
        await find_tool(flavour_of(version), version)
    except EngineError as error:
        pytest.skip(str(error))


async def each(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def run_all(host: EngineHost, tenant: Tenant, *statements: str) -> None:
    async with session_of(host, tenant) as session:
        for statement in statements:
            await session.run(statement)


async def helpers_left(host: EngineHost, tenant: Tenant) -> tuple[list[str], int]:
    """The accounts of dumps and loads, and how many sessions they have."""
    accounts = await as_root(host, f"SELECT user FROM mysql.user WHERE user LIKE '{tenant.name}\\_%'")
    sessions = await as_root(host, f"SELECT id FROM information_schema.processlist WHERE user LIKE '{tenant.name}\\_%'")
    return [user for (user,) in accounts], len(sessions)


async def until_left(host: EngineHost, tenant: Tenant, *users: str) -> None:
    """These accounts are all that is left of dumps and loads. A session that was ended is listed until its thread has
    come to an end."""

    async def without_sessions() -> bool:
        accounts, sessions = await helpers_left(host, tenant)
        assert accounts == list(users)
        return not sessions

    await until(without_sessions)
