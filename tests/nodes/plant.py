"""Headwater on many machines: two of each part, of which one has a clock that is half a minute ahead."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

import asyncpg
import httpx
import msgspec
from temporalio.client import Client
from temporalio.service import RPCError

from app.contracts.base import Engine
from app.contracts.queues import CONTROL_QUEUE, WEBHOOK_QUEUE, engine_queue
from app.core.secrets import SecretBox, new_key_setting
from app.engines.base import AdminAddress
from app.engines.postgres import make_template
from app.engines.tls import PLAIN
from app.hosts.registration import NewHost, add_host
from app.local.ports import LOOPBACK
from app.local.postgres import DISCREET, PostgresService, find_programs
from app.local.processes import ChildProcess, Command, run_to_end
from app.local.python_services import ApiService, WorkerService
from app.local.service_user import service_user
from app.local.services import Service, server_environ, start
from app.local.temporal import TemporalService, find_program
from app.store.service_role import prepare
from tests.nodes.network import Machine, Network
from tests.support.store import service_dsn, store

REGIONS = ("us-east-1", "eu-west-1")
_FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
AHEAD = {
    "LD_PRELOAD": str(_FAKETIME),
    "FAKETIME": "+30s",
    "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    "FAKETIME_NO_CACHE": "1",
}
"""The environment of a process whose clock is ahead (libfaketime(1))."""
CLOCKS_DIFFER = _FAKETIME.exists()
_POSTGRES_PORT, _TEMPORAL_PORT, _API_PORT, _PROXY_PORT = 5432, 7233, 8000, 8080
_REPLICATION = "replicator"


class Postgres(PostgresService):
    """On a machine of its own."""

    def __init__(self, machine: Machine, folder: Path, **settings: str) -> None:
        super().__init__(
            machine.name,
            folder=folder / machine.name,
            port=_POSTGRES_PORT,
            log=folder / f"{machine.name}.log",
            programs=find_programs(None),
            max_connections=500,
            settings=DISCREET | {"listen_addresses": "*"} | settings,
        )
        self.machine = machine
        self.host = machine.address
        self.folder = folder / machine.name

    def dsn(self, database: str = "postgres") -> str:
        return super().dsn(database).replace(LOOPBACK, self.machine.address)

    def command(self) -> Command:
        made = super().command()
        return replace(made, argv=self.machine.inside(*made.argv))

    async def prepare(self) -> None:
        await super().prepare()
        rules = self.folder / "data" / "pg_hba.conf"
        if "10.211" not in rules.read_text():
            with rules.open("a") as more:
                more.write("host all,replication all 10.211.77.0/24 scram-sha-256\n")

    async def copy(self, primary: "Postgres") -> None:
        """Becomes the primary's standby (pg_basebackup(1))."""
        self.folder.mkdir(parents=True, mode=0o711)
        data, programs = self.folder / "data", find_programs(None)
        draft = self.folder / "draft"
        draft.mkdir(mode=0o700)
        user = service_user(draft, programs / "pg_basebackup", death_signal="KILL")
        user.own(draft)
        arguments = ["-d", primary.dsn(), "-D", str(draft / "data"), "-R", "-X", "stream", "-c", "fast", "--no-sync"]
        argv = (*user.prefix, str(programs / "pg_basebackup"), *arguments)
        await run_to_end(Command(argv=argv, log=self.log, environ=server_environ(), folder=Path("/")), timeout=120)
        (draft / "data").rename(data)
        (self.folder / "password").write_text(primary.password)


class Temporal(TemporalService):
    """The same."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        super().__init__(
            machine.name,
            port=_TEMPORAL_PORT,
            ui_port=8233,
            log=folder / f"{machine.name}.log",
            program=find_program(),
            database=folder / machine.name / "temporal.db",
        )
        self.host = machine.address
        self._machine = machine

    @property
    def address(self) -> str:
        return f"{self._machine.address}:{self.port}"

    def command(self) -> Command:
        made = super().command()
        argv = ["--ip=0.0.0.0" if argument.startswith("--ip=") else argument for argument in made.argv]
        return replace(made, argv=self._machine.inside(*argv))

    async def is_ready(self) -> bool:
        try:
            await self._keep_closed_workflows(await Client.connect(self.address, namespace="default"))
        except (OSError, RPCError, RuntimeError):
            return False
        return True


class Api(ApiService):
    """The same."""

    def __init__(self, machine: Machine, folder: Path, environ: Mapping[str, str]) -> None:
        own = {**environ, "HEADWATER_API_HOST": machine.address, "HEADWATER_API_PORT": str(_API_PORT)}
        log = folder / f"{machine.name}.log"
        super().__init__(machine.name, port=_API_PORT, log=log, environ=lambda: own, host=machine.address)
        self._machine = machine

    def command(self) -> Command:
        made = super().command()
        return replace(made, argv=self._machine.inside(*made.argv))


class Worker(WorkerService):
    """The same."""

    def __init__(self, machine: Machine, folder: Path, environ: Mapping[str, str], queue: str) -> None:
        own = dict(environ)
        super().__init__(machine.name, log=folder / f"{machine.name}.log", environ=lambda: own, queues=(queue,))
        self._machine = machine

    def command(self) -> Command:
        made = super().command()
        return replace(made, argv=self._machine.inside(*made.argv))


class Proxy(Service):
    """Caddy before both APIs. It asks each every half second whether it is ready."""

    def __init__(self, machine: Machine, folder: Path, apis: Sequence[Machine]) -> None:
        super().__init__(machine.name, _PROXY_PORT, folder / f"{machine.name}.log")
        self.host = machine.address
        self._machine = machine
        self._folder = folder
        self._apis = apis

    @property
    def url(self) -> str:
        return f"http://{self._machine.address}:{self.port}"

    def command(self) -> Command:
        proxy = {
            "handler": "reverse_proxy",
            "upstreams": [{"dial": f"{api.address}:{_API_PORT}"} for api in self._apis],
            "load_balancing": {"selection_policy": {"policy": "round_robin"}, "try_duration": "2s"},
            "health_checks": {"active": {"uri": "/health/ready", "interval": "500ms", "timeout": "2s"}},
            "transport": {"protocol": "http", "dial_timeout": "1s"},
        }
        server = {
            "listen": [f":{self.port}"],
            "automatic_https": {"disable": True},
            "routes": [{"handle": [proxy]}],
        }
        config = {"admin": {"disabled": True}, "apps": {"http": {"servers": {"api": server}}}}
        file = self._folder / "proxy.json"
        file.write_bytes(msgspec.json.encode(config))
        program = str(Path(sys.executable).with_name("caddy"))
        environ = server_environ() | {"HOME": str(self._folder)}
        return Command(argv=self._machine.inside(program, "run", "--config", str(file)), log=self.log, environ=environ)

    async def is_ready(self) -> bool:
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=3) as http:
                return (await http.get(f"{self.url}/health/ready")).status_code == 200
        except httpx.TransportError:
            return False


@dataclass
class Plant:
    """All machines, with what runs on each."""

    network: Network
    primary: Postgres
    standby: Postgres
    control_dsn: str
    """Of both servers of our own database, for the service's role."""
    environ: dict[str, str]
    url: str
    hosts: list[Postgres]
    services: dict[str, Service] = field(default_factory=dict)
    processes: dict[str, ChildProcess] = field(default_factory=dict)

    async def start(self, service: Service) -> None:
        """Starts it on its machine, again if it was killed."""
        self.services[service.name] = service
        self.processes[service.name] = await start(service, timeout=120)

    def signal(self, name: str, number: signal.Signals) -> None:
        """To the process and all that it has started."""
        os.killpg(self.processes[name].pid, number)

    async def kill(self, name: str) -> None:
        await self.processes[name].kill()

    async def promote(self) -> None:
        """The primary's machine is lost for ever; the standby takes its place."""
        self.network.machines[self.primary.name].cut()
        await self.kill(self.primary.name)
        del self.processes[self.primary.name]
        connection = await asyncpg.connect(self.standby.dsn(), timeout=20)
        try:
            assert await connection.fetchval("SELECT pg_promote(true, 60)")
        finally:
            await connection.close()

    async def rows(self, sql: str, *arguments: object) -> list[asyncpg.Record]:
        """Of our own database."""
        connection = await asyncpg.connect(self.control_dsn, timeout=10)
        try:
            return list(await connection.fetch(sql, *arguments))
        finally:
            await connection.close(timeout=2)


@asynccontextmanager
async def plant(folder: Path, network: Network, **settings: str) -> AsyncIterator[Plant]:
    """Everything runs. `settings` are environment variables without their prefix."""
    add = network.add
    primary, standby = Postgres(add("store-1"), folder), Postgres(add("store-2"), folder)
    hosts = [Postgres(add(f"host-{number}"), folder) for number, _ in enumerate(REGIONS, 1)]
    temporal = Temporal(add("temporal"), folder)
    async with AsyncExitStack() as stack:
        both = f"{primary.machine.address}:{_POSTGRES_PORT},{standby.machine.address}:{_POSTGRES_PORT}"
        ours = {
            "HOME": str(folder),
            "TEMPORAL_ADDRESS": temporal.address,
            "SECRET_KEYS": new_key_setting(),
            "POOL_SIZE": "0",
            "FINAL_BACKUPS": "false",
            "DELETION_GRACE_SECONDS": "3",
            **settings,
        }
        environ = server_environ() | {f"HEADWATER_{name}": value for name, value in ours.items()}
        made = Plant(network, primary, standby, "", environ, "", hosts)
        stack.push_async_callback(_stop, made)
        for server in (primary, *hosts):
            await server.prepare()
            await made.start(server)
        await standby.copy(primary)
        await made.start(standby)
        await _execute(primary.dsn(), "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        await made.start(temporal)
        service = service_dsn(primary.dsn())
        await prepare(primary.dsn(), service)
        made.control_dsn = service.replace(f"{primary.machine.address}:{_POSTGRES_PORT}", both)
        made.control_dsn += "?target_session_attrs=read-write"
        environ["HEADWATER_CONTROL_DSN"] = made.control_dsn
        await _register(service, SecretBox.from_setting(ours["SECRET_KEYS"]), hosts)
        await _start_ours(made, folder)
        yield made


async def _start_ours(made: Plant, folder: Path) -> None:
    ahead = made.environ | (AHEAD if CLOCKS_DIFFER else {})
    apis = [made.network.add(f"api-{number}") for number in (1, 2)]
    for api, environ in zip(apis, (made.environ, ahead), strict=True):
        await made.start(Api(api, folder, environ))
    queues = {"control": CONTROL_QUEUE, "webhooks": WEBHOOK_QUEUE}
    queues |= {f"engine-{number}": engine_queue(region) for number, region in enumerate(REGIONS, 1)}
    for name, queue in queues.items():
        for number, environ in enumerate((made.environ, ahead), 1):
            await made.start(Worker(made.network.add(f"{name}-{number}"), folder, environ, queue))
    proxy = Proxy(made.network.add("proxy"), folder, apis)
    made.url = proxy.url
    await made.start(proxy)


async def _register(dsn: str, box: SecretBox, hosts: Sequence[Postgres]) -> None:
    for host, region in zip(hosts, REGIONS, strict=True):
        password = uuid4().hex
        connection = await asyncpg.connect(host.dsn())
        try:
            await make_template(connection, {"dsn": host.dsn()})
            await connection.execute(f"CREATE ROLE provisioner LOGIN CREATEDB CREATEROLE PASSWORD '{password}'")
            await connection.execute("GRANT SET ON PARAMETER temp_file_limit TO provisioner")
        finally:
            await connection.close()
        address = host.machine.address
        admin = AdminAddress(
            host=address, port=host.port, user="provisioner", password=password, database="postgres", tls=PLAIN
        )
        async with store(dsn):
            new = NewHost(
                engine=Engine.POSTGRES,
                region=region,
                admin=admin,
                public_host=address,
                public_port=host.port,
                capacity=10**6,
                connection_capacity=10**6,
            )
            await add_host(box, new)


async def _execute(dsn: str, *statements: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def _stop(made: Plant) -> None:
    for machine in made.network.machines.values():
        machine.heal()
    for child in reversed(list(made.processes.values())):
        await child.kill()
