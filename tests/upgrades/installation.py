"""An installation of several processes behind a proxy, each of which may run another version."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

import msgspec

from app.contracts.base import Engine
from app.core.secrets import new_key_setting
from app.local.processes import ChildProcess, Command
from app.local.python_services import every_queue
from app.local.services import server_environ, start
from app.local.temporal import TemporalService
from tests.cli.command import Headwater
from tests.servers import RunningServer
from tests.support.forks import ForkedApi, ForkedWorker
from tests.support.namespaces import new_namespace
from tests.support.provisioners import mysql_provisioner, postgres_provisioner
from tests.support.receiver import Receiver
from tests.support.service import REGION
from tests.support.store import new_database
from tests.upgrades.caddy import CaddyService

HERE = Path(sys.executable)
"""The interpreter with this version."""

_SEED = """
import asyncio, json, os, sys
import msgspec
from app.auth.keys import KeyControls, create_key
from app.auth.users import create_user
from app.contracts.base import Engine
from app.core.secrets import SecretBox
from app.engines.base import AdminAddress
from app.hosts.service import NewHost, add_host
from app.store.migrate import migrate
from app.store.session import connected

async def main():
    box = SecretBox.from_setting(os.environ["HEADWATER_SECRET_KEYS"])
    async with connected(os.environ["HEADWATER_CONTROL_DSN"]):
        await migrate()
        for engine, admin in json.loads(sys.argv[1]).items():
            address = msgspec.convert(admin, AdminAddress)
            await add_host(box, NewHost(engine=Engine(engine), region=sys.argv[2], admin=address,
                public_host=address.host, public_port=address.port, capacity=10**6, connection_capacity=10**6))
        user = await create_user(email="someone@example.com", name="Someone", tier="pro")
        key = await create_key(user_id=user.user_id, name="first", controls=KeyControls(requests_per_minute=10**5),
            scopes=["databases:*", "blueprints:read", "blueprints:write", "webhooks:read", "webhooks:write"])
    print(key.api_key)

asyncio.run(main())
"""
"""What `headwater hosts add`, `users create` and `keys create` of the release do, in one process: the start of each
takes a second."""


class _VersionedApi(ForkedApi):
    """Of the version that `python` has; this one's is forked."""

    python: Path = HERE

    async def launch(self, command: Command) -> ChildProcess:
        return await (super().launch(command) if self.python == HERE else _launch(self.python, command))


class _VersionedWorker(ForkedWorker):
    """The same."""

    python: Path = HERE

    async def launch(self, command: Command) -> ChildProcess:
        return await (super().launch(command) if self.python == HERE else _launch(self.python, command))


async def _launch(python: Path, command: Command) -> ChildProcess:
    return await ChildProcess.start(replace(command, argv=(str(python), *command.argv[1:])))


@dataclass
class Installation:
    """`environ` is that of its processes, for each version in turn: whoever upgrades changes it."""

    folder: Path
    environ: dict[str, str]
    owner_dsn: str
    proxy: CaddyService
    apis: dict[str, str]
    """Addresses by name."""
    processes: dict[str, ChildProcess] = field(default_factory=dict)

    async def start_api(self, name: str, python: Path) -> None:
        """Returns when it is ready."""
        host, port, log = self.apis[name], self.proxy.api_port, self.folder / f"{name}.log"
        environ = {**self.environ, "HEADWATER_API_HOST": host, "HEADWATER_API_PORT": str(port)}
        service = _VersionedApi(name, port=port, log=log, environ=lambda: environ, host=host)
        await self._start(service, python)

    async def start_worker(self, name: str, python: Path) -> None:
        """One for all queues. Returns when it is ready."""
        log = self.folder / f"{name}.log"
        service = _VersionedWorker(name, log=log, environ=lambda: self.environ, queues=every_queue((REGION,)))
        await self._start(service, python)

    async def stop(self, name: str) -> None:
        """As an orchestrator does: SIGTERM, and 15 seconds."""
        await self.processes.pop(name).stop(timeout=15)

    def command(self, **settings: str) -> Headwater:
        """This version's `headwater`, with these settings besides."""
        ours = {name.removeprefix("HEADWATER_"): value for name, value in self.environ.items() if "HEADWATER_" in name}
        return Headwater({**ours, **settings})

    async def _start(self, service: _VersionedApi | _VersionedWorker, python: Path) -> None:
        service.python = python
        self.processes[service.name] = await start(service)


@asynccontextmanager
async def installed(
    folder: Path,
    python: Path,
    control: RunningServer,
    temporal: TemporalService,
    hosts: Mapping[Engine, RunningServer],
    receiver: Receiver,
) -> AsyncIterator[tuple[Installation, str]]:
    """Two APIs behind a proxy and a worker, of the version that `python` has; and a key of the API."""
    owner = await new_database(control.admin_dsn)
    ours = {
        "HOME": str(folder),
        "CONTROL_DSN": owner,
        "TEMPORAL_ADDRESS": temporal.address,
        "TEMPORAL_NAMESPACE": await new_namespace(temporal),
        "SECRET_KEYS": new_key_setting(),
        "POOL_SIZE": "0",
        "DELETION_GRACE_SECONDS": "2",
        "WEBHOOK_ALLOW_CIDRS": "127.0.0.0/8",
        "WEBHOOK_CA_FILE": str(receiver.ca_file),
    }
    apis = {"api-1": "127.0.0.1", "api-2": "127.0.0.2"}
    environ = server_environ() | {f"HEADWATER_{name}": value for name, value in ours.items()}
    proxy = CaddyService(folder, list(apis.values()))
    made = Installation(folder, environ, owner, proxy, apis)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(_stop_all, made)
        key = await _seeded(python, environ, hosts)
        for name in apis:
            await made.start_api(name, python)
        await made.start_worker("worker", python)
        await stack.enter_async_context(proxy.gates_answer())
        made.processes["proxy"] = await start(proxy)
        yield made, key


async def _seeded(python: Path, environ: Mapping[str, str], hosts: Mapping[Engine, RunningServer]) -> str:
    name = f"provisioner{uuid4().hex[:8]}"
    admins = {}
    for engine, server in hosts.items():
        make = postgres_provisioner if engine is Engine.POSTGRES else mysql_provisioner
        admins[engine.value] = await make(server, uuid4().hex, name)
    argv = [str(python), "-P", "-c", _SEED, msgspec.json.encode(admins).decode(), REGION]
    run = await asyncio.create_subprocess_exec(*argv, env=dict(environ), stdout=PIPE, stderr=PIPE, cwd="/")
    key, fault = await run.communicate()
    assert run.returncode == 0, fault.decode()
    return key.decode().strip()


async def _stop_all(made: Installation) -> None:
    for name in list(made.processes):
        await made.stop(name)
