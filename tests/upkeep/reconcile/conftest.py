"""The running service's own records and hosts, as a run sees them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import msgspec
import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.service import RPCError

from app.contracts.base import Engine
from app.contracts.reconcile import HostRef, ReconcileStep
from app.contracts.upkeep import ScheduleId
from app.core.ids import marker
from app.core.temporal import connect
from app.engines.base import AdminAddress, EngineAdapter, FoundTenant, Tenant
from app.hosts.adapters import Adapters, admin_place
from app.hosts.records import Host
from app.local.ports import LOOPBACK
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch
from app.upkeep.reconcile import hosts as hosts_module
from app.upkeep.reconcile import service as reconcile
from tests.e2e.hosts import mysql, postgres
from tests.support.ports import free_port
from tests.support.service import RunningService, SharedServers
from tests.support.store import store
from tests.support.waiting import until

AGE = timedelta(hours=1)
"""For which an orphan is only reported."""


@dataclass
class Bench:
    """One engine's host of the running service. It is shared: only look for what the test made."""

    running: RunningService
    adapters: Adapters
    host: HostRef

    async def adapter(self) -> EngineAdapter:
        return await self.adapters.of_host(self.host.host_id)

    async def run(self, age: timedelta | None = AGE) -> ReconcileStep:
        return await reconcile.reconcile_host(DEFAULT_PLANS, self.running.box, self.adapters, self.host, age)

    async def details(self, name: str, age: timedelta | None = AGE) -> list[str]:
        """What a check says of it: the violations, and then the notes."""
        report = await reconcile.check(self.running.box, age)
        return [one.detail for one in (*report.violations, *report.notes) if one.subject == name]

    async def on_host(self, name: str) -> FoundTenant | None:
        adapter = await self.adapter()
        return next((one for one in await adapter.list_tenants() if one.name == name), None)

    async def findings(self, subject: str) -> list[str]:
        """The rules that the last run found broken about it."""
        rows = await fetch(
            "SELECT rule FROM findings WHERE host_id = $1 AND subject = $2 ORDER BY rule", self.host.host_id, subject
        )
        return [row["rule"] for row in rows]

    async def set_row(self, database: str, change: str) -> None:
        """As SQL, past all that would guard it; and as if nothing had happened to it for long."""
        await fetch(
            f"UPDATE databases SET updated_at = now() - interval '1 hour', {change} WHERE uuid = $1", UUID(database)
        )

    async def age(self, subject: str, by: timedelta) -> None:
        """As if the finding had first been seen that much earlier."""
        await fetch("UPDATE findings SET first_seen_at = first_seen_at - $2::interval WHERE subject = $1", subject, by)

    @property
    def known(self) -> Host:
        return Host(self.host.host_id, self.host.engine, self.host.region, self.host.address)

    @asynccontextmanager
    async def session(self, made: dict[str, Any]) -> AsyncIterator[Any]:
        """A plain client's, with an `execute`."""
        open_session = postgres if self.host.engine is Engine.POSTGRES else mysql
        async with open_session(made["connection_string"]) as session:
            yield session

    async def as_tenant(self, made: dict[str, Any], statement: str) -> None:
        async with self.session(made) as session:
            await session.execute(statement)

    @asynccontextmanager
    async def dead_host(self) -> AsyncIterator[HostRef]:
        """One more of this engine, on which nothing is placed and nobody answers."""
        port = free_port()
        admin = AdminAddress(host=LOOPBACK, port=port, user="nobody", password="")
        place = admin_place(self.host.engine, LOOPBACK, port)
        rows = await fetch(
            "INSERT INTO engine_hosts (engine, flavour, version, region, host, port, admin_sealed, capacity,"
            " connection_capacity, draining) VALUES ($1, '', '', $2, $3, $4, $5, 1, 1, true) RETURNING id",
            self.host.engine,
            self.host.region,
            LOOPBACK,
            port,
            self.running.box.seal(msgspec.json.encode(admin).decode(), place),
        )
        host_id = rows[0]["id"]
        try:
            yield HostRef(
                host_id=host_id, engine=self.host.engine, region=self.host.region, address=f"{LOOPBACK}:{port}"
            )
        finally:
            await fetch("DELETE FROM engine_hosts WHERE id = $1", host_id)

    @asynccontextmanager
    async def second_address(self) -> AsyncIterator[HostRef]:
        """The same server, registered once more under another name, with nothing placed there."""
        [row] = await fetch("SELECT host, port, admin_sealed FROM engine_hosts WHERE id = $1", self.host.host_id)
        admin = self.running.box.open(row["admin_sealed"], admin_place(self.host.engine, row["host"], row["port"]))
        rows = await fetch(
            "INSERT INTO engine_hosts (engine, flavour, version, region, host, port, admin_sealed, tls, tls_ca,"
            " capacity, connection_capacity, draining) SELECT engine, flavour, version, region, 'localhost', port, $2,"
            " tls, tls_ca, 1, 1, true FROM engine_hosts WHERE id = $1 RETURNING id",
            self.host.host_id,
            self.running.box.seal(admin, admin_place(self.host.engine, "localhost", row["port"])),
        )
        host_id = rows[0]["id"]
        try:
            yield HostRef(
                host_id=host_id, engine=self.host.engine, region=self.host.region, address=f"localhost:{row['port']}"
            )
        finally:
            await fetch("DELETE FROM engine_hosts WHERE id = $1", host_id)

    def tenant(self, made: dict[str, Any]) -> Tenant:
        return Tenant(name=made["db_name"], password=made["db_password"], marker=marker(UUID(made["uuid"])))


@pytest_asyncio.fixture(scope="package")
async def service(
    tmp_path_factory: pytest.TempPathFactory,
    shared_servers: SharedServers,
) -> AsyncIterator[RunningService]:
    """One of their own: each look at a host visits all databases that the service has there, and the tests of other
    folders make hundreds."""
    async with shared_servers.service(
        tmp_path_factory.mktemp("reconciled"),
        # None but what the tests ask for, and the first, which a worker begins when it starts.
        RECONCILE_INTERVAL_SECONDS="10000000",
        # A measurement would thaw what a test froze by hand, and undo the limits that it set. Each interval has a run
        # at a random time: of an hour, that may be now.
        QUOTA_INTERVAL_SECONDS="1000000",
    ) as made:
        client = await connect(made.temporal.address, made.namespace)
        for schedule in (ScheduleId.RECONCILE, ScheduleId.ENFORCE_QUOTAS, ScheduleId.RECLAIM_SPACE):
            await until(partial(_first_is_over, client, schedule))
        yield made


async def _first_is_over(client: Client, schedule: ScheduleId) -> bool:
    """A Schedule has its first run when it is made."""
    try:
        info = (await client.get_schedule_handle(schedule.value).describe()).info
    except RPCError:
        return False
    return info.num_actions > 0 and not info.running_actions


@pytest_asyncio.fixture
async def records(service: RunningService) -> AsyncIterator[None]:
    """This process's store, connected to the running service's."""
    async with store(service.control_dsn):
        yield


@pytest_asyncio.fixture(params=list(Engine))
async def bench(
    service: RunningService, records: None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Bench]:
    """Each engine in turn, with its second look soon after the first."""
    monkeypatch.setattr(hosts_module, "RECHECK_SECONDS", 0.05)
    hosts = [host for host in await reconcile.list_hosts() if host.engine is request.param]
    if not hosts:
        pytest.skip(f"this machine has no server for {request.param}")
    adapters = Adapters(service.box)
    yield Bench(service, adapters, hosts[0])
    await adapters.close()
