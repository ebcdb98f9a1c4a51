"""A measurement says whether a table is being rebuilt, where its old and its new file count until that is done."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import MappingProxyType

import pytest

from app.engines.base import Tenant, Usage
from tests.engines.harness import EngineHost, kind_of, session_of, tenants
from tests.support.waiting import until

_LOCK = "pg_advisory_xact_lock(5)"
_TABLE = "CREATE TABLE IF NOT EXISTS kept (n int)"


async def test_a_table_that_is_being_rebuilt_is_reported(host: EngineHost) -> None:
    if host.flavour == "mysql":
        pytest.skip("it shows the new table only when that is done")
    async with tenants(host, 2) as [tenant, other]:

        async def rebuilding() -> set[str]:
            return {name for name, usage in (await _measured(host, tenant, other)).items() if usage.rebuilding}

        assert await rebuilding() == set()
        async with _REBUILDS[kind_of(host)](host, tenant):
            await until(rebuilding)
            assert await rebuilding() == {tenant.name}
        assert await rebuilding() == set()


@pytest.mark.parametrize("engine_server", ["oracle"], indirect=True, scope="session")
async def test_what_is_not_shown_does_not_count(host: EngineHost) -> None:
    async with tenants(host) as [tenant]:
        async with session_of(host, tenant) as session:
            await session.run(_TABLE)
        before = await _measured(host, tenant)
        async with _on_mysql(host, tenant):
            during = (await _measured(host, tenant))[tenant.name]
        assert (during.storage_bytes, during.rebuilding) == (before[tenant.name].storage_bytes, False)


async def _measured(host: EngineHost, *asked: Tenant) -> dict[str, Usage]:
    return await host.adapter.measure([tenant.name for tenant in asked])


@asynccontextmanager
async def _on_postgres(host: EngineHost, tenant: Tenant) -> AsyncIterator[None]:
    """Held by the function of the table's index."""
    async with session_of(host, tenant) as session, session_of(host, tenant) as holding:
        await session.run(
            "CREATE FUNCTION held(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE"
            f" AS 'BEGIN PERFORM {_LOCK}; RETURN n; END'"
        )
        await session.run(_TABLE)
        await session.run("INSERT INTO kept VALUES (1)")
        await session.run("CREATE INDEX ON kept (held(n))")
        await holding.run("BEGIN")
        await holding.run(f"SELECT {_LOCK}")
        rebuild = asyncio.create_task(session.run("VACUUM FULL kept"))
        yield
        await holding.run("COMMIT")
        await rebuild


@asynccontextmanager
async def _on_mysql(host: EngineHost, tenant: Tenant) -> AsyncIterator[None]:
    """Held by who reads the table from the rebuild's beginning on: it needs the table for itself then, and at its
    end."""

    async def waiting(sessions: int) -> bool:
        return await host.lock_waits(tenant.name) == sessions

    async with (
        session_of(host, tenant) as session,
        session_of(host, tenant) as before,
        session_of(host, tenant) as reading,
    ):
        await session.run(_TABLE)
        await session.run("INSERT INTO kept VALUES (1)")
        for one in (before, reading):
            await one.run("BEGIN")
        await before.run("SELECT * FROM kept")
        rebuild = asyncio.create_task(session.run("OPTIMIZE TABLE kept"))
        await until(lambda: waiting(1))
        read = asyncio.create_task(reading.run("SELECT * FROM kept"))
        await until(lambda: waiting(2))
        await before.run("COMMIT")
        await read
        yield
        await reading.run("COMMIT")
        await rebuild


_REBUILDS: Mapping[str, Callable[[EngineHost, Tenant], AbstractAsyncContextManager[None]]] = MappingProxyType(
    {"postgres": _on_postgres, "mysql": _on_mysql}
)
