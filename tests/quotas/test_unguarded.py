"""A PostgreSQL host that no superuser prepared: frozen tenants help themselves there, and are stopped all the same."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg

from app.contracts.base import DatabaseStatus, PauseReason
from tests import servers
from tests.quotas.bench import bench
from tests.quotas.tenant_session import refused, session_of

START = datetime(2026, 11, 3, tzinfo=UTC)


async def test_who_thaws_itself_is_paused_when_it_grows(control_dsn: str, tmp_path: Path) -> None:
    async with servers.postgres(tmp_path) as server, bench(control_dsn, server) as on_bench:
        root = await asyncpg.connect(server.admin_dsn)
        await root.execute("ALTER DATABASE headwater_template IS_TEMPLATE false")
        await root.close()
        made = await on_bench.create(storage_hard_limit_gb=0.02)
        async with session_of(made) as session:
            await session.load(16)
        assert "frozen" in (await on_bench.enforce(START)).moves
        await on_bench.follow(made)
        assert (await on_bench.enforce(START + timedelta(minutes=1))).moves == {}
        assert await refused(made, "INSERT INTO loaded VALUES ('x')")
        async with session_of(made) as session:
            await session.run("GRANT ALL ON SCHEMA public TO CURRENT_USER; GRANT ALL ON loaded TO CURRENT_USER")
            await session.load(12)
        for minute, moves in ((2, {}), (3, {"paused_storage": 1})):
            assert (await on_bench.enforce(START + timedelta(minutes=minute))).moves == moves
        record = await on_bench.follow(made)
        assert (record.status, record.paused_reason) == (DatabaseStatus.PAUSED, PauseReason.STORAGE)
        assert await refused(made)
