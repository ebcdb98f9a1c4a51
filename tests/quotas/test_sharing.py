"""What a tenant takes of what all share, from its host's threshold to the end of its session."""

from datetime import UTC, datetime
from pathlib import Path

from prometheus_client import REGISTRY

from app.upkeep.reconcile.host_resources import SCARCE
from app.upkeep.reconcile.hosts import check_hosts
from tests import servers
from tests.quotas.bench import Bench, bench
from tests.quotas.tenant_session import session_of
from tests.support.waiting import until

START = datetime(2026, 11, 3, tzinfo=UTC)
HALF = "SELECT count(pg_advisory_lock(n)) FROM generate_series(1, 250) n"


async def _scarce(on_bench: Bench) -> list[str]:
    return [one.subject for one in await check_hosts(on_bench.box, on_bench.adapters, None) if one.rule == SCARCE]


async def _is_plenty(on_bench: Bench) -> bool:
    return not await _scarce(on_bench)


async def test_a_host_past_its_threshold_is_found_reported_and_freed(control_dsn: str, tmp_path: Path) -> None:
    async with (
        # Room for 400 locks.
        servers.postgres(tmp_path, max_locks_per_transaction="10", max_connections="40") as server,
        bench(control_dsn, server) as on_bench,
    ):
        made, other = await on_bench.create(), await on_bench.create()
        assert await on_bench.enforce(START)
        assert await _scarce(on_bench) == []
        async with session_of(made) as holding, session_of(other) as modest:
            await modest.value("SELECT count(pg_advisory_lock(n)) FROM generate_series(1, 5) n")
            await holding.value(HALF)
            address = f"{server.host}:{server.port}"
            assert await _scarce(on_bench) == [f"{address}/locks"]
            assert (await on_bench.enforce(START)).moves == {"ended_locks": 1}
            told = {"engine": "postgres", "host": address, "resource": "locks"}
            assert REGISTRY.get_sample_value("headwater_host_resource_capacity", told) == 400
            assert await modest.value("SELECT 1") == 1, "it holds no more than its share"
        await until(lambda: _is_plenty(on_bench))
