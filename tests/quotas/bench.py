"""Real engine hosts under the steps of the workflows, taken one at a time by the test, at moments of its choice."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from activities.engine import EngineActivitiesOnHosts
from app.contracts.base import Engine
from app.contracts.quotas import RegionMeasurement
from app.core.secrets import SecretBox, new_key_setting
from app.databases import records
from app.databases.records import DatabaseRecord
from app.hosts.adapters import Adapters
from app.hosts.registration import NewHost, add_host
from app.hosts.slots import HostSlots
from app.outbox.provisionings import RunningProvisionings
from app.provisioning import enforcement
from app.quotas.plans import DEFAULT_PLANS, Plans
from app.store.session import fetch
from tests.servers import RunningServer
from tests.support.in_process import LoneApi, lone_api
from tests.support.provisioners import mysql_provisioner, postgres_provisioner

REGION = "bench-1"
_ROOM = 100_000


@dataclass
class Bench:
    api: LoneApi
    box: SecretBox
    adapters: Adapters
    plans: Plans = DEFAULT_PLANS
    gap: float = 120.0
    """Seconds that one sample may answer for."""
    overdue: float = 60.0
    """Seconds after which a question's statement is ended."""

    @property
    def steps(self) -> EngineActivitiesOnHosts:
        return EngineActivitiesOnHosts(self.plans, self.box, self.adapters, HostSlots(), RunningProvisionings())

    async def create(self, *, tier: str = "pro", **fields: Any) -> dict[str, Any]:
        """An active database, with its password."""
        caller = await self.api.caller(tier=tier)
        made: dict[str, Any] = (await caller.create(region=REGION, **fields)).json()["data"]
        await self.steps.create_database(UUID(made["uuid"]))
        return made

    async def enforce(self, at: datetime) -> RegionMeasurement:
        """One run, as the workflow makes it at that moment."""
        return await enforcement.measure_region(
            self.plans, self.adapters, REGION, at, longest_gap=self.gap, overdue=self.overdue
        )

    async def follow(self, made: dict[str, Any]) -> DatabaseRecord:
        """The engine is brought to what is recorded; returns that."""
        await self.steps.apply_access(UUID(made["uuid"]))
        return await self.record(made)

    async def record(self, made: dict[str, Any]) -> DatabaseRecord:
        record = await records.find(UUID(made["uuid"]))
        assert record is not None
        return record

    async def usage(self, made: dict[str, Any]) -> dict[str, Any]:
        rows = await fetch(
            "SELECT u.* FROM database_usage u JOIN databases d ON d.id = u.database_id WHERE d.uuid = $1",
            UUID(made["uuid"]),
        )
        return dict(rows[0])


@asynccontextmanager
async def bench(control_dsn: str, *servers: RunningServer) -> AsyncIterator[Bench]:
    """On a fresh database of our own, with these servers as the region's hosts. The API has the page of metrics too."""
    key = new_key_setting()
    box = SecretBox.from_setting(key)
    async with lone_api(control_dsn, secret_keys=key, pool_size=0, metrics_port=8000) as api:
        for server in servers:
            admin = await (postgres_provisioner if server.flavour == "postgres" else mysql_provisioner)(
                server, uuid4().hex, name=f"bench_{uuid4().hex[:8]}"
            )
            new = NewHost(
                engine=Engine.POSTGRES if server.flavour == "postgres" else Engine.MYSQL,
                region=REGION,
                admin=admin,
                public_host=admin.host,
                public_port=admin.port,
                capacity=_ROOM,
                connection_capacity=_ROOM,
            )
            await add_host(box, new)
        adapters = Adapters(box)
        try:
            yield Bench(api, box, adapters)
        finally:
            for row in await fetch("SELECT uuid FROM databases WHERE remote_since IS NOT NULL"):
                await fetch("UPDATE databases SET status = 'deleted', destroy_at = now() WHERE uuid = $1", row["uuid"])
                await EngineActivitiesOnHosts(
                    DEFAULT_PLANS, box, adapters, HostSlots(), RunningProvisionings()
                ).destroy_database(row["uuid"])
            await adapters.close()
