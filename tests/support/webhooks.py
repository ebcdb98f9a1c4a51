"""Deliveries on real servers: a control worker and a webhook worker, each a process of its own, and real receivers.

Events are committed from the test's process, as any change commits them.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
from temporalio.client import Client

from app.contracts.queues import CONTROL_QUEUE, WEBHOOK_QUEUE
from app.core.secrets import SecretBox, new_key_setting
from app.core.temporal import connect
from app.local.processes import ChildProcess
from app.local.services import server_environ, start
from app.local.temporal import TemporalService
from app.outbox import events
from app.outbox.event_types import EventType
from app.store.session import fetch, transaction
from tests.support.client import Caller
from tests.support.forks import ForkedWorker
from tests.support.freezing import frozen
from tests.support.in_process import LoneApi, lone_api
from tests.support.namespaces import new_namespace
from tests.support.receiver import Receiver
from tests.support.restart import start_those_that_ended

ALLOWED = "127.0.0.0/8"
CONTROL, WEBHOOKS = "worker-control", "worker-webhooks"


class Thing(msgspec.Struct):
    """The subject of these tests' events."""

    number: int


@dataclass
class Delivering:
    """`api` runs in this process; the workers are started and killed by name."""

    api: LoneApi
    folder: Path
    environ: dict[str, str]
    processes: dict[str, ChildProcess] = field(default_factory=dict)

    async def start(self, name: str, **settings: str) -> None:
        """`settings` are environment variables without their prefix, for this process alone."""
        queue = {CONTROL: CONTROL_QUEUE, WEBHOOKS: WEBHOOK_QUEUE}[name]
        environ = self.environ | _named(settings)
        service = ForkedWorker(
            name, log=self.folder / f"{name}.log", environ=lambda: environ, queues=(queue,), metrics_port=0
        )
        self.processes[name] = await start(service)

    async def kill(self, name: str) -> None:
        """SIGKILL."""
        await self.processes.pop(name).kill()

    def frozen(self, name: str) -> AbstractAsyncContextManager[None]:
        return frozen(self.processes[name].pid, self.environ["HEADWATER_CONTROL_DSN"])

    async def start_stopped(self) -> list[str]:
        """Starts the workers that have ended; returns which."""
        return await start_those_that_ended(self.processes, (CONTROL, WEBHOOKS), self.start)

    async def temporal(self) -> Client:
        return await connect(self.environ["HEADWATER_TEMPORAL_ADDRESS"], self.environ["HEADWATER_TEMPORAL_NAMESPACE"])

    async def stop(self) -> None:
        for name in list(self.processes):
            await self.processes.pop(name).stop(timeout=5)


@asynccontextmanager
async def delivering(
    folder: Path, control_dsn: str, temporal: TemporalService, receiver: Receiver, **settings: str
) -> AsyncIterator[Delivering]:
    """Both workers and the API, for the block. `settings` are environment variables without their prefix."""
    given = {
        "CONTROL_DSN": control_dsn,
        "TEMPORAL_ADDRESS": temporal.address,
        # The workers of other services would take its tasks.
        "TEMPORAL_NAMESPACE": await new_namespace(temporal),
        "SECRET_KEYS": new_key_setting(),
        "HOME": str(folder),
        "WEBHOOK_ALLOW_CIDRS": ALLOWED,
        "WEBHOOK_CA_FILE": str(receiver.ca_file),
        **settings,
    }
    known = {
        "secret_keys": given["SECRET_KEYS"],
        "temporal_address": temporal.address,
        "temporal_namespace": given["TEMPORAL_NAMESPACE"],
        "webhook_allow_cidrs": (ALLOWED,),
        "webhook_ca_file": receiver.ca_file,
    }
    async with lone_api(control_dsn, **known) as api:
        made = Delivering(api, folder, server_environ() | _named(given))
        try:
            await made.start(CONTROL)
            await made.start(WEBHOOKS)
            yield made
        finally:
            await made.stop()


def _named(settings: dict[str, str]) -> dict[str, str]:
    return {f"HEADWATER_{name}": one for name, one in settings.items()}


async def subscribed(caller: Caller, url: str, *events: str) -> tuple[int, str]:
    """A new endpoint's id and secret."""
    answer = await caller.post("/webhook_endpoints", {"url": url, "events": list(events)})
    assert answer.status_code == 201, answer.text
    return answer.json()["data"]["id"], answer.json()["secret"]


async def emit(caller: Caller, number: int = 0, kind: EventType = EventType.DATABASE_PROVISIONED) -> None:
    """Commits one event of the caller's team."""
    async with transaction():
        await events.append(kind, team_id=caller.team_id, database_id=None, data=Thing(number))


async def deliveries(caller: Caller, endpoint: int) -> list[dict[str, Any]]:
    """The newest hundred."""
    answer = await caller.get(f"/webhook_endpoints/{endpoint}/deliveries?limit=100")
    assert answer.status_code == 200, answer.text
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


async def count(endpoint: int, status: str) -> int:
    rows = await fetch(
        "SELECT count(*) FROM webhook_deliveries WHERE endpoint_id = $1 AND status = $2", endpoint, status
    )
    return int(rows[0]["count"])


def secret_box(environ: dict[str, str]) -> SecretBox:
    return SecretBox.from_setting(environ["HEADWATER_SECRET_KEYS"])


def path() -> str:
    """One that no other test asks for."""
    return f"/{uuid4().hex}"
