"""Statements of questions whose process was killed: none runs for ever, and no others are touched."""

import asyncio
import sys
from asyncio.subprocess import PIPE

import msgspec

from app.engines.base import Tenant
from tests.engines.harness import EngineHost, as_root, session_of, tenants
from tests.engines.test_queries import PASSWORD, on, prepare
from tests.support.waiting import until

OVERDUE = 3.0


async def ask_and_be_killed(host: EngineHost, tenant: Tenant, password: str | None, sql: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.engines.ask_once", stdin=PIPE, stdout=PIPE
    )
    assert process.stdin
    assert process.stdout
    order = (host.adapter.engine, host.administrator, tenant, password, sql)
    process.stdin.write(msgspec.json.encode(order) + b"\n")
    assert await process.stdout.readline() == b"begun\n"
    await until(lambda: _sleeps(host, tenant))
    assert process.returncode is None
    process.kill()
    await process.wait()


async def _sleeps(host: EngineHost, tenant: Tenant) -> bool:
    return any("sleep" in statement.lower() for statement in await host.statements(tenant.name))


async def _nobody(host: EngineHost, tenant: Tenant) -> bool:
    return not await host.sessions(tenant.name)


async def test_a_write_whose_process_was_killed_ends_and_leaves_nothing(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await prepare(host, tenant, "CREATE TABLE kept (n INT)", "INSERT INTO kept VALUES (1)")
        sleep = on(host, "(SELECT 1 FROM pg_sleep(300))", "1 + SLEEP(300)")
        await ask_and_be_killed(host, tenant, None, f"UPDATE kept SET n = n + {sleep}")

        async def over() -> bool:
            await host.adapter.end_overdue(OVERDUE)
            return not await host.adapter.sessions([tenant.name])

        await until(over)
        async with session_of(host, tenant) as session:
            assert [tuple(row) for row in await session.run("SELECT n FROM kept")] == [(1,)]


async def test_so_does_a_read(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        await host.adapter.make_reader(tenant, PASSWORD)
        await ask_and_be_killed(host, tenant, PASSWORD, on(host, "SELECT pg_sleep(300)", "SELECT SLEEP(300)"))
        if host.flavour != "postgres":  # which notices by itself that nobody is there any more

            async def ended() -> bool:
                return await host.adapter.end_overdue(OVERDUE) == 1

            await until(ended)
        await until(lambda: _nobody(host, tenant))


async def test_the_tenants_own_statements_take_as_long_as_they_do(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        session = await host.login(tenant)
        running = asyncio.create_task(session.run(on(host, "SELECT pg_sleep(600)", "SELECT SLEEP(600)")))
        await until(lambda: _is_overdue(host, tenant))
        assert await host.adapter.end_overdue(OVERDUE) == 0
        assert await _sleeps(host, tenant)
        assert not running.done()
        await host.adapter.revoke_access(tenant)
        await asyncio.gather(running, return_exceptions=True)
        await session.close()


async def _is_overdue(host: EngineHost, tenant: Tenant) -> bool:
    """By the server's clock."""
    runs_since = on(
        host,
        "extract(epoch FROM clock_timestamp() - query_start) FROM pg_stat_activity WHERE usename",
        "time FROM information_schema.processlist WHERE user",
    )
    rows = await as_root(host, f"SELECT {runs_since} = '{tenant.name}'")
    return any(float(seconds) > OVERDUE + 1 for (seconds,) in rows)
