"""Giving way to a server's clients: what it says of them, and a dump that is read in steps."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pprint import pformat
from typing import Any

from app.engines.base import Tenant
from app.engines.pacing import DumpStep, Pace
from tests.engines.harness import EngineHost, Session, kind_of, session_of, tenants
from tests.engines.mysql_dumping import skip_without_tool
from tests.support.waiting import until

_ROWS = {
    "postgres": "INSERT INTO rows_{n} SELECT i, repeat(md5(i::text), 25) FROM generate_series(1, 3000) i",
    "mysql": "INSERT INTO rows_{n} WITH RECURSIVE c AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM c WHERE i < 900) "
    "SELECT i, REPEAT(SHA2(i, 256), 12) FROM c",
}


_SESSIONS = {
    "postgres": "SELECT usename, datname, state, wait_event_type, state_change, now(), query FROM pg_stat_activity",
    "mysql": "SHOW FULL PROCESSLIST",
}
_OTHERS = {
    "postgres": "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND usename <> '{service}'"
    " AND pid <> pg_backend_pid()",
    "mysql": "SELECT id FROM information_schema.processlist WHERE user NOT IN ('{service}', 'event_scheduler')"
    " AND id <> connection_id()",
}


class Slow(Pace):
    """Counts its steps, of which no two may be at once."""

    def __init__(self) -> None:
        self.of_the_tool = self.of_the_server = 0
        self.size = 0
        self._turn = asyncio.Lock()

    @property
    def slow(self) -> bool:
        return True

    @asynccontextmanager
    async def step(self) -> AsyncIterator[DumpStep]:
        async with self._turn:
            step = DumpStep()
            yield step
            self.of_the_tool += step.size > 0
            self.of_the_server += step.size == 0
            self.size += step.size


async def seen(host: EngineHost, session: Any, other: Tenant) -> bool:
    """Of one that has asked for something: for a second, which a crowded machine may take longer to look."""
    await session.run("SELECT 1")
    return await host.adapter.clients_at_work(other)


async def at_rest(host: EngineHost, tenant: Tenant) -> bool:
    return not await host.adapter.clients_at_work(tenant)


async def gone(host: EngineHost, tenant: Tenant) -> bool:
    return not await host.sessions(tenant.name)


@asynccontextmanager
async def root_of(host: EngineHost) -> AsyncIterator[Session]:
    session = await host.root()
    try:
        yield session
    finally:
        await session.close()


async def none_else(host: EngineHost, root: Session) -> bool:
    """No session but that one and the service's: MariaDB shows one that leaves as `Quit`, then once more as one that
    began to rest just now."""
    return await root.run(_OTHERS[kind_of(host)].format(service=host.administrator.user)) == []


async def waits(host: EngineHost, tenant: Tenant) -> bool:
    return await host.lock_waits(tenant.name) > 0


async def test_a_client_is_seen_while_it_works(host: EngineHost) -> None:
    async with tenants(host, 2) as [working, other]:
        await until(lambda: at_rest(host, other))
        async with session_of(host, working) as session:
            await until(lambda: seen(host, session, other))
            # It stays open, and does nothing.
            await until(lambda: at_rest(host, other))


async def test_a_dump_and_the_service_are_no_clients(lone_host: EngineHost) -> None:
    host = lone_host
    await _tools(host)
    async with tenants(host) as [tenant], root_of(host) as root:
        await _fill(host, tenant, 2)
        await until(lambda: none_else(host, root))
        await until(lambda: at_rest(host, tenant))
        async with host.adapter.dumping(tenant) as dump:
            async for _ in dump.chunks():
                assert await at_rest(host, tenant), pformat(await root.run(_SESSIONS[kind_of(host)]))
            assert await dump.contents()


async def test_who_waits_for_a_table_that_a_dump_reads_is_not_given_way_to(host: EngineHost) -> None:
    await _tools(host)
    async with tenants(host) as [tenant], session_of(host, tenant) as holder, session_of(host, tenant) as waiter:
        await holder.run("CREATE TABLE pets (n int)")
        await holder.run("BEGIN")
        await holder.run("SELECT * FROM pets")
        altering = asyncio.create_task(waiter.run("ALTER TABLE pets ADD COLUMN m int"))
        await until(lambda: waits(host, tenant))
        await holder.run("SELECT * FROM pets")
        assert await at_rest(host, tenant)
        await holder.run("COMMIT")
        await altering
        await until(lambda: seen(host, waiter, tenant))


async def test_a_dump_in_small_steps_holds_the_same(host: EngineHost) -> None:
    await _tools(host)
    async with tenants(host) as [tenant]:
        await _fill(host, tenant, 3)
        told = await host.adapter.contents(tenant)
        slow, dumped = Slow(), 0
        async with host.adapter.dumping(tenant, slow) as dump:
            async for chunk in dump.chunks():
                dumped += len(chunk)
            assert await dump.contents() == told
        assert dumped - 100_000 < slow.size <= dumped + 100_000
        assert slow.of_the_tool >= 2
        if kind_of(host) == "postgres":  # it sums up each table besides, of more than two MiB
            assert slow.of_the_server >= 3 * 3


async def _tools(host: EngineHost) -> None:
    if kind_of(host) != "postgres":
        await skip_without_tool(host)


async def _fill(host: EngineHost, tenant: Tenant, tables: int) -> None:
    """Each has more than what is read in a small step."""
    async with session_of(host, tenant) as session:
        for number in range(tables):
            await session.run(f"CREATE TABLE rows_{number} (i int, t text)")
            await session.run(_ROWS[kind_of(host)].replace("{n}", str(number)))
    # MariaDB shows a session that leaves as `Quit`, then once more as one that began to rest just now.
    await until(lambda: gone(host, tenant))
