"""The servers of the webhook benchmarks: a durable control PostgreSQL, Temporal with its state in a file, a control
worker, a webhook worker, and a real HTTPS receiver in this process."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from app.local.ports import free_port
from app.local.postgres import PostgresService, find_programs
from app.local.services import start
from app.local.temporal import TemporalService, find_program
from tests.support.receiver import Receiver, receiver
from tests.support.webhooks import Delivering, delivering


@dataclass(frozen=True)
class DeliveryServers:
    running: Delivering
    target: Receiver
    servers: dict[str, int]
    """Process ids, by service."""

    @property
    def processes(self) -> dict[str, list[int]]:
        """By service, including workers."""
        workers = {name: process.pid for name, process in self.running.processes.items()}
        return {part: [pid] for part, pid in (self.servers | workers).items()}


@asynccontextmanager
async def delivery_servers(folder: Path, **settings: str) -> AsyncIterator[DeliveryServers]:
    """For the block. `settings` are the workers', as environment variables without their prefix."""
    control = PostgresService(
        "control",
        folder=folder / "control",
        port=free_port(),
        log=folder / "control.log",
        programs=find_programs(None),
        max_connections=200,
    )
    temporal = TemporalService(
        "temporal",
        port=free_port(),
        ui_port=free_port(),
        log=folder / "temporal.log",
        program=find_program(),
        database=folder / "temporal.db",
    )
    async with AsyncExitStack() as stack:
        pids: dict[str, int] = {}
        for service in (control, temporal):
            await service.prepare()
            child = await start(service)
            stack.push_async_callback(child.stop, timeout=5)
            pids[service.name] = child.pid
        target = await stack.enter_async_context(receiver(folder))
        made = await stack.enter_async_context(delivering(folder, control.dsn(), temporal, target, **settings))
        yield DeliveryServers(made, target, pids)
