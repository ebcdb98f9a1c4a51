"""Open transactions and statements of a tenant's put off nothing that is done to it, and no measurement."""

import asyncio
import time
from contextlib import suppress

import pytest

from app.engines.base import EngineLimits
from app.engines.postgres.connections import LOCK_SECONDS
from tests.engines.harness import EngineHost, RefusedError, session_of, tenants

TABLES = ("CREATE TABLE kept (n INT PRIMARY KEY, t VARCHAR(100))", "INSERT INTO kept VALUES (1, 'a')")
HELD = {
    "its own role": (("revoke", "set_limits"), "ALTER ROLE CURRENT_USER PASSWORD 'another'"),
    "all that it was granted": (("revoke", "freeze"), "DROP OWNED BY CURRENT_USER"),
    "rights on a table": (("freeze",), "GRANT SELECT ON kept TO PUBLIC"),
    "a table": (("freeze",), "LOCK TABLE kept IN ACCESS EXCLUSIVE MODE"),
}


@pytest.mark.parametrize("held", HELD)
async def test_an_open_transaction_is_no_protection(host: EngineHost, held: str) -> None:
    if host.flavour != "postgres":
        pytest.skip("elsewhere no transaction of a tenant's holds its account or its grants")
    operations, statement = HELD[held]
    for operation in operations:
        async with tenants(host) as [tenant]:
            holding = await host.login(tenant)
            for before in (*TABLES, "BEGIN", statement):
                await holding.run(before)
            began = time.monotonic()
            limits = (EngineLimits(connections=1),) if operation == "set_limits" else ()
            await getattr(host.adapter, operation)(tenant, *limits)
            assert time.monotonic() - began < LOCK_SECONDS - 1, "it waited for the lock to the end"
            await holding.close()


async def test_who_comes_back_to_hold_again_is_no_better_off(host: EngineHost) -> None:
    if host.flavour != "postgres":
        pytest.skip("elsewhere no tenant holds its own account")
    async with tenants(host) as [tenant]:

        async def hold() -> None:
            while True:
                with suppress(RefusedError, ConnectionError):
                    async with session_of(host, tenant) as session:
                        await session.run("BEGIN")
                        await session.run(f"ALTER ROLE CURRENT_USER PASSWORD '{tenant.password}'")
                        await session.run("SELECT pg_sleep(60)")
                await asyncio.sleep(0.01)

        holders = [asyncio.create_task(hold()) for _ in range(4)]
        await asyncio.sleep(0.5)
        await host.adapter.set_limits(tenant, EngineLimits(connections=3))
        await host.adapter.revoke(tenant)
        for holder in holders:
            holder.cancel()
        await asyncio.gather(*holders, return_exceptions=True)
