"""Metrics of databases on real servers: what happens in them is counted rightly, and what can't be told is a gap."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest

from app.contracts.base import Engine
from app.engines.base import AdminAddress
from app.hosts.adapters import admin_place
from app.local.ports import LOOPBACK
from app.provisioning import enforcement
from app.store.session import fetch
from tests.e2e.hosts import mysql, postgres
from tests.quotas.bench import REGION, Bench, bench
from tests.quotas.tenant_session import session_of
from tests.quotas.test_enforcement import silent_server
from tests.servers import RunningServer
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.sampled import SampledDatabase
from tests.support.waiting import until

SERVERS = {"postgres": "postgres_server", "mysql": "mysql_server", "oracle": "oracle_mysql_server"}
RESETS = {
    "postgres": "SELECT pg_stat_reset()",
    "mariadb": "FLUSH USER_STATISTICS",
    "mysql": "FLUSH STATUS",
}


class Watched(SampledDatabase):
    """A database on a real server, and its team."""

    def __init__(self, on: Bench, server: RunningServer, caller: Caller, made: dict[str, Any]) -> None:
        super().__init__(caller, made["uuid"], REGION, on.adapters)
        self._bench = on
        self.server = server
        self.made = made

    async def until_alone(self) -> None:
        """Until the tenant's sessions have ended: PostgreSQL counts what they did when they do."""
        if self.server.flavour != "postgres":
            return
        async with postgres(self.server.admin_dsn) as admin:
            theirs = "SELECT count(*) FROM pg_stat_activity WHERE usename = $1"

            async def alone() -> bool:
                return not await admin.fetchval(theirs, self.made["db_username"])

            await until(alone)

    async def host_at(self, port: int) -> int:
        """A registered host on this port."""
        address = AdminAddress(host=LOOPBACK, port=port, user="nobody", password="nothing")
        place = admin_place(Engine.POSTGRES, LOOPBACK, port)
        sealed = self._bench.box.seal(msgspec.json.encode(address).decode(), place)
        return await self._bench.api.add_host(region=REGION, host=LOOPBACK, port=port, admin_sealed=sealed)

    async def as_root(self, statement: str) -> None:
        """On the server; on PostgreSQL in the tenant's database."""
        if self.server.flavour == "postgres":
            dsn = self.server.admin_dsn.rpartition("/")[0] + f"/{self.made['db_name']}"
            async with postgres(dsn) as connection:
                await connection.execute(statement)
        else:
            async with mysql(self.server.admin_dsn) as connection:
                await connection.execute(statement)


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> RunningServer:
    running: RunningServer = request.getfixturevalue(SERVERS[request.param])
    return running


@pytest.fixture
async def watched(server: RunningServer, control_dsn: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watched]:
    monkeypatch.setattr(enforcement, "SESSION_LIST_SECONDS", 0.2)
    async with bench(control_dsn, server) as on:
        caller = await on.api.caller(tier="pro")
        engine = "postgres" if server.flavour == "postgres" else "mysql"
        made = data_of(await caller.create(region=REGION, db_type=engine), 202)
        await on.steps.create_database(UUID(made["uuid"]))
        yield Watched(on, server, caller, data_of(await caller.get(f"/databases/{made['uuid']}")))


async def test_what_happens_is_counted_once_and_in_its_minute(watched: Watched) -> None:
    async with session_of(watched.made) as session:
        await session.run("CREATE TABLE counted (id integer)")
    await watched.until_alone()
    await watched.sample(0)
    await watched.sample(1)
    async with session_of(watched.made) as session:
        for _ in range(20):
            await session.run("BEGIN")
            await session.run(f"INSERT INTO counted VALUES {', '.join(['(1)'] * 50)}")
            await session.run("COMMIT")
        await session.value("SELECT sum(id) FROM counted")
        await watched.sample(2)
    await watched.sample(2)
    await watched.sample(3)
    written = await watched.points("rows_written")
    assert sum(written.values()) == 1000, written
    assert written[2] + written[3] == 1000, "PostgreSQL tells a second later, or at the session's end"
    transactions = await watched.points("transactions")
    assert 20 <= transactions[2] + transactions[3] <= 30
    read = await watched.points("rows_read")
    assert 1000 <= read[2] + read[3] <= 3000
    assert (await watched.points("connections"))[2] == 1
    assert (await watched.points("storage_bytes"))[3] > 0
    assert await watched.gaps() == []


async def test_a_pause_is_a_gap(watched: Watched) -> None:
    await watched.sample(0)
    await watched.sample(1)
    await fetch("UPDATE databases SET status = 'paused'")
    await watched.sample(2)
    await fetch("UPDATE databases SET status = 'active'")
    await watched.sample(3)
    await watched.sample(4)
    assert await watched.gaps() == [(1, 3)]
    assert set(await watched.points("transactions")) == {1, 4}
    assert set(await watched.points("connections")) == {0, 1, 3, 4}, "what a database has is known at once"


async def test_a_reset_of_the_servers_statistics_is_a_gap(watched: Watched) -> None:
    async with session_of(watched.made) as session:
        await session.run("CREATE TABLE counted (id integer)")
        await session.run(f"INSERT INTO counted VALUES {', '.join(['(1)'] * 500)}")
    await watched.sample(0)
    await watched.sample(1)
    await watched.as_root(RESETS[watched.server.flavour])
    await watched.sample(2)
    await watched.sample(3)
    assert await watched.gaps() == [(1, 2)]
    points = await watched.points("rows_written")
    assert set(points) == {1, 3}
    assert min(points.values()) >= 0


@pytest.mark.parametrize("server", ["postgres"], indirect=True)
async def test_a_host_that_hangs_makes_what_is_known_old(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    await watched.sample(0)
    await watched.sample(1)
    (home,) = await fetch("SELECT host_id FROM databases")
    async with silent_server() as port:
        await fetch("UPDATE databases SET host_id = $1", await watched.host_at(port))
        # Only while all depends on it: a host that is well may take longer on a machine with other work.
        with monkeypatch.context() as patch:
            patch.setattr(enforcement, "HOST_SECONDS", 1.0)
            for minute in (2, 3):
                await watched.sample(minute)
        found = await watched.metrics()
        assert found["stale_seconds"] >= 18 * 60, "the newest sample is that of minute 1, 20 minutes before the test"
        assert datetime.fromisoformat(found["gaps"][-1][0]) == watched.at(1)
        await fetch("UPDATE databases SET host_id = $1", home["host_id"])
    await watched.sample(8)
    await watched.sample(9)
    assert await watched.gaps() == [(1, 8)]
    assert set(await watched.points("transactions")) == {1, 9}
