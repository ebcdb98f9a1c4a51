"""What a question's read costs on PostgreSQL: few round trips, each of which a client waits for."""

from urllib.parse import urlsplit

import msgspec
import pytest

from app.engines.querying import QueryLimits
from app.engines.registry import open_adapter
from tests.engines.harness import EngineHost, tenants
from tests.limits.round_trips import counting

LIMITS = QueryLimits(seconds=20, rows=10)
PASSWORD = "Reader-passw0rd"


@pytest.mark.parametrize("engine_server", ["postgres"], indirect=True, scope="session")
async def test_a_read_after_the_login(host: EngineHost) -> None:
    address = host.administrator
    async with tenants(host) as [tenant], counting(f"postgresql://{address.host}:{address.port}") as (way, counter):
        await host.adapter.make_reader(tenant, PASSWORD)
        adapter = open_adapter(host.adapter.engine, msgspec.structs.replace(address, port=urlsplit(way).port))
        async with adapter.reading(tenant, PASSWORD, LIMITS) as session:
            known = await session.describe()
        async with adapter.reading(tenant, PASSWORD, LIMITS) as session:
            counter.count = 0
            assert await session.describe(known) is known
            assert counter.count == 1, "whether the schema is still the same"
            await session.read("SELECT 1 AS n")
            assert counter.count == 1 + 3, "the transaction, the columns, the rows"
        await adapter.close()
