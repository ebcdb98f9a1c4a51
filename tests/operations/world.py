"""The service inside the tests' own process: real workflows on a real Temporal server, our own database and an engine
host on real servers, each behind a door that can be closed, and every step of an operation behind a gate."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import asyncpg
import msgspec
import temporalio.client
import temporalio.worker
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from app.contracts.base import Engine
from app.contracts.engine import HOST_UNAVAILABLE
from app.contracts.queues import CONTROL_QUEUE, engine_queue
from app.core.secrets import SecretBox, new_key_setting
from app.core.settings import Settings
from app.core.temporal import DATA_CONVERTER
from app.hosts.adapters import Adapters
from app.hosts.registration import NewHost, add_host
from app.local.ports import LOOPBACK
from app.quotas.plans import DEFAULT_PLANS
from tests.operations.agreement import ROWS, disagreements
from tests.operations.engine_side import seen_on
from tests.servers import RunningServer
from tests.support.backups import any_store
from tests.support.client import Caller
from tests.support.gates import NoneAhead
from tests.support.in_process import LoneApi, lone_api
from tests.support.provisioners import mysql_provisioner, postgres_provisioner
from tests.support.proxy import Proxy, proxy
from workers.provisionings import start_provisionings
from workers.queues import WorkerDependencies
from workers.relay import relay
from workers.runner import build_worker
from workers.search_attributes import register_search_attributes


@dataclass
class Gate:
    """Of one activity of one workflow."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    after: bool = False
    """Whether it stands behind what the activity does, whose answer is lost then."""
    dies: bool = False
    """Whether the first attempt that came to the gate gets no further."""


class Gates(temporalio.client.Interceptor, temporalio.worker.Interceptor):
    """Around all activities of the workers of its client. `failures` counts what attempts failed with."""

    def __init__(self) -> None:
        self._gates: dict[tuple[str, str], Gate] = {}
        self.failing: set[tuple[str, str]] = set()
        """Steps whose host can't be reached, so that others are taken."""
        self.failures: Counter[str] = Counter()

    def close(self, workflow_id: str, activity_name: str, *, after: bool) -> Gate:
        gate = Gate(after=after)
        self._gates[workflow_id, activity_name] = gate
        return gate

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Gated(next, self)

    async def pass_by(self, step: tuple[str, str], *, after: bool) -> None:
        gate = self._gates.get(step)
        if gate is None or gate.after != after:
            return
        gate.reached.set()
        self.failing.discard((step[0], "create_database"))
        await gate.opened.wait()
        first = self._gates.pop(step, None) is not None
        if first and (gate.dies or gate.after):
            # As if the worker had died: nobody translates it, and no operation is told.
            raise ApplicationError("killed", type="Killed", category=ApplicationErrorCategory.BENIGN)


class _Gated(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, gates: Gates) -> None:
        super().__init__(next)
        self._gates = gates

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        step = (activity.info().workflow_id or "", activity.info().activity_type)
        try:
            if step in self._gates.failing:
                raise ApplicationError("as the test says", type=HOST_UNAVAILABLE)
            await self._gates.pass_by(step, after=False)
            answer = await super().execute_activity(input)
            await self._gates.pass_by(step, after=True)
        except ApplicationError as failure:
            self._gates.failures[failure.type or ""] += 1
            raise
        return answer


@dataclass
class World:
    api: LoneApi
    box: SecretBox
    direct_dsn: str
    """Of our own database, past its door."""
    direct: "asyncpg.Pool[asyncpg.Record]"
    """Connections to it."""
    engine: RunningServer
    region: str
    client: Client
    gates: Gates
    store: Proxy
    temporal: Proxy
    host: Proxy

    @property
    def kind(self) -> Engine:
        """Of the databases that it can make."""
        return Engine.POSTGRES if self.engine.flavour == "postgres" else Engine.MYSQL

    async def rows(self, sql: str, *arguments: object) -> list[Any]:
        """Of our own database, whoever else can't reach it."""
        return list(await self.direct.fetch(sql, *arguments))

    async def hurry(self) -> None:
        """Has the relay start now what a request would have started."""
        await self.rows("UPDATE workflow_starts SET next_attempt_at = now()")

    async def faults(self) -> list[str]:
        """What is left under way, or doesn't agree: with each other, or with the engine."""
        left = await self.rows("SELECT workflow_id FROM workflow_starts")
        faults = [f"{row['workflow_id']} is still to be started" for row in left]
        faults += disagreements(await self.rows(ROWS))
        # Looked at once all else is well.
        return faults or await self._engine_faults()

    async def _engine_faults(self) -> list[str]:
        kept = await self.rows(
            "SELECT uuid, engine_name, status, connections, login_name FROM databases"
            " WHERE remote_since IS NOT NULL AND destroyed_at IS NULL"
        )
        ever = await self.rows("SELECT engine_name, coalesce(login_name, engine_name) AS login FROM databases")
        found = await seen_on(self.engine, {row["engine_name"]: row["login"] for row in ever})
        wanted = {row["engine_name"]: row for row in kept}
        faults = [f"{name} is left on the host" for name in found.keys() - wanted.keys()]
        faults += [f"{name} is missing on the host" for name in wanted.keys() - found.keys()]
        for name in found.keys() & wanted.keys():
            row, seen = wanted[name], found[name]
            if seen.open != (row["status"] == "active"):
                faults.append(f"{row['uuid']} is {row['status']}, and on the host open={seen.open}")
            # Several logins share them.
            if seen.open and row["login_name"] is None and seen.connections != row["connections"]:
                faults.append(f"{row['uuid']} has {seen.connections} connections, not {row['connections']}")
        return faults


@asynccontextmanager
async def world(control_dsn: str, temporal_address: str, engine: RunningServer) -> AsyncIterator[tuple[World, Caller]]:
    """With one host in a region of its own."""
    async with AsyncExitStack() as stack:
        doors = [
            await stack.enter_async_context(proxy(dsn))
            for dsn in (control_dsn, f"temporal://{temporal_address}", engine.admin_dsn)
        ]
        keys, region = new_key_setting(), f"model-{uuid4().hex[:8]}"
        box = SecretBox.from_setting(keys)
        gates = Gates()
        client = await Client.connect(
            f"{LOOPBACK}:{doors[1].port}", data_converter=DATA_CONVERTER, interceptors=[gates]
        )
        await register_search_attributes(client)
        api = await stack.enter_async_context(
            lone_api(doors[0].dsn(control_dsn), secret_keys=keys, temporal_address=f"{LOOPBACK}:{doors[1].port}")
        )
        await _register_host(box, engine, doors[2].port, region)
        settings = Settings(control_dsn=doors[0].dsn(control_dsn), final_backups=False)
        tools = WorkerDependencies(
            settings=settings,
            plans=DEFAULT_PLANS,
            box=box,
            adapters=Adapters(box),
            backup_store=any_store(box),
            first_attempts=NoneAhead(),
        )
        stack.push_async_callback(tools.adapters.close)
        for queue in (CONTROL_QUEUE, engine_queue(region)):
            await stack.enter_async_context(build_worker(client, queue, tools))
        background = [
            asyncio.create_task(relay(client)),
            asyncio.create_task(start_provisionings(client, tools, region)),
        ]
        stack.push_async_callback(_cancel, background)
        direct = await stack.enter_async_context(asyncpg.create_pool(control_dsn, min_size=0, max_size=4))
        made = World(api, box, control_dsn, direct, engine, region, client, gates, *doors)
        yield made, await api.caller()


async def _register_host(box: SecretBox, engine: RunningServer, port: int, region: str) -> None:
    provisioner = postgres_provisioner if engine.flavour == "postgres" else mysql_provisioner
    admin = await provisioner(engine, uuid4().hex, f"provisioner{uuid4().hex[:8]}")
    admin = msgspec.structs.replace(admin, port=port)
    new = NewHost(
        engine=Engine.POSTGRES if engine.flavour == "postgres" else Engine.MYSQL,
        region=region,
        admin=admin,
        public_host=LOOPBACK,
        public_port=port,
        capacity=1_000_000,
        connection_capacity=1_000_000,
    )
    await add_host(box, new)


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(*tasks, return_exceptions=True)
