"""What a moved database has left on a host is closed, or removed."""

from uuid import UUID

import asyncpg
import pytest

from app.contracts.engine import RemnantRef
from app.hosts.records import registered_hosts
from app.store.session import fetch
from tests.e2e.hosts import login
from tests.quotas.bench import REGION, bench
from tests.servers import RunningServer


async def test_it_is_closed_with_its_data_and_removed_with_it(control_dsn: str, postgres_server: RunningServer) -> None:
    async with bench(control_dsn, postgres_server) as on_bench:
        made = await on_bench.create()
        (old,) = await registered_hosts(REGION)
        other = await on_bench.api.add_host(region="elsewhere-1")
        remnant = RemnantRef(database=UUID(made["uuid"]), host_id=old.id, name=made["db_name"])
        await on_bench.steps.close_remnant(remnant)  # it is placed there still
        assert await login(made["connection_string"]) == 1
        await fetch("UPDATE databases SET host_id = $2, remote_since = NULL WHERE uuid = $1", remnant.database, other)
        adapter = await on_bench.adapters.of_host(old.id)
        await on_bench.steps.close_remnant(remnant)
        with pytest.raises(asyncpg.PostgresError):
            await login(made["connection_string"])
        assert remnant.name in await adapter.measure([remnant.name])
        await on_bench.steps.remove_remnant(remnant)
        assert remnant.name not in await adapter.measure([remnant.name])
