"""The whole service on real servers: the API and the worker are processes of their own, as in production.

So a test can kill them, and this process's one connection pool stays the tests' own.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from uuid import uuid4

import httpx

from app.auth.keys import KeyControls
from app.contracts.base import Engine
from app.core.secrets import SecretBox, new_key_setting
from app.engines.base import AdminAddress
from app.hosts.registration import NewHost, add_host
from app.local.ports import LOOPBACK
from app.local.processes import ChildProcess
from app.local.python_services import every_queue
from app.local.services import server_environ, start
from app.local.temporal import TemporalService
from tests.servers import RunningServer
from tests.support.client import ALL_SCOPES, UNHURRIED, Caller, new_caller
from tests.support.forks import ForkedApi, ForkedWorker
from tests.support.freezing import frozen
from tests.support.model_server import MODEL, ModelServer, model_server
from tests.support.namespaces import new_namespace
from tests.support.ports import free_port
from tests.support.provisioners import mysql_provisioner, postgres_provisioner
from tests.support.restart import start_those_that_ended
from tests.support.store import migrated_database, store

REGION = "us-east-1"
_ROOM = 1_000_000
"""The capacity of a test's host in connections and databases, high enough for all tests."""


@dataclass
class RunningService:
    """Addresses, servers and processes. Connect this process to `control_dsn` with `tests.support.store.store`."""

    folder: Path
    control_dsn: str
    temporal: TemporalService
    secret_keys: str
    postgres: RunningServer
    mysql: RunningServer | None
    http: httpx.AsyncClient
    api: ForkedApi
    worker: ForkedWorker
    model: ModelServer
    namespace: str = "default"
    """Temporal's: no other service takes its tasks."""
    settings: dict[str, str] = field(default_factory=dict)
    """The environment of every process."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Variables of it that are not ours, by their whole names."""
    processes: dict[str, ChildProcess] = field(default_factory=dict)
    """`api` and `worker`, while they run."""

    @property
    def box(self) -> SecretBox:
        return SecretBox.from_setting(self.secret_keys)

    def environ(self, **settings: str) -> dict[str, str]:
        """The environment of a process of the service. `settings` are additional ones, such as `API_PORT`."""
        given = {
            "CONTROL_DSN": self.control_dsn,
            "TEMPORAL_ADDRESS": self.temporal.address,
            "TEMPORAL_NAMESPACE": self.namespace,
            "SECRET_KEYS": self.secret_keys,
            "HOME": str(self.folder),
            "POOL_SIZE": "0",
            # A deletion then needs a dump before its end. The tests of final backups have a service with them.
            "FINAL_BACKUPS": "false",
            # There is no pool to refill, and each look at it is a workflow.
            "REFILL_INTERVAL_SECONDS": "86400",
            # No scheduled backup falls into a test by chance.
            "BACKUP_HOUR_SECONDS": "1000000",
            **self.settings,
            "NL_MODEL": MODEL,
            **settings,
        }
        ours = {f"HEADWATER_{name}": value for name, value in given.items()}
        return server_environ() | self.model.environ | dict(self.others) | ours

    async def start(self, name: str) -> None:
        """Starts `api` or `worker` (again), and waits until it serves."""
        self.processes[name] = await start(self.api if name == "api" else self.worker)

    async def kill(self, name: str) -> None:
        """SIGKILL."""
        await self.processes.pop(name).kill()

    def frozen(self, name: str) -> AbstractAsyncContextManager[None]:
        """`api` or `worker` stands still for the block, and holds nothing of our database."""
        return frozen(self.processes[name].pid, self.control_dsn)

    async def start_stopped(self) -> list[str]:
        """Starts the API and the worker if they have ended; returns which."""
        return await start_those_that_ended(self.processes, ("worker", "api"), self.start)

    async def stop(self) -> None:
        for name in list(self.processes):
            await self.processes.pop(name).stop(timeout=5)

    @asynccontextmanager
    async def another_api(self, **settings: str) -> AsyncIterator[tuple[httpx.AsyncClient, ChildProcess]]:
        """Another API process with other settings, for the block. It may be killed in the block."""
        port = free_port()
        environ = self.environ(API_PORT=str(port), **settings)
        log = self.folder / f"api-{port}.log"
        process = await start(ForkedApi("api", port=port, log=log, environ=lambda: environ, host=LOOPBACK))
        try:
            async with http_client(f"http://{LOOPBACK}:{port}") as client:
                yield client, process
        finally:
            await process.stop(timeout=5)

    async def caller(
        self,
        *,
        tier: str = "pro",
        scopes: tuple[str, ...] = ALL_SCOPES,
        controls: KeyControls = UNHURRIED,
        http: httpx.AsyncClient | None = None,
    ) -> Caller:
        """A new user with a team and a key. `http` is the API to call, this service's unless given."""
        return await new_caller(http or self.http, self.control_dsn, tier=tier, scopes=scopes, controls=controls)


@asynccontextmanager
async def running_service(
    folder: Path,
    control: RunningServer,
    temporal: TemporalService,
    postgres: RunningServer,
    mysql: RunningServer | None,
    admins: Mapping[Engine, AdminAddress] | None = None,
    *,
    namespace: str = "default",
    others: Mapping[str, str] = MappingProxyType({}),
    **settings: str,
) -> AsyncIterator[RunningService]:
    """A migrated control database, engine hosts in one region, an API and a worker. `settings` are environment
    variables without their prefix; by default there is no warm pool. `admins` are other accounts for the service on
    the hosts. `namespace` is Temporal's; only the service that all tests share is in the default one. `others`
    are variables with their whole names."""
    control_dsn = await migrated_database(control.admin_dsn)
    secret_keys = new_key_setting()
    admins = admins or await _provisioners(postgres, mysql)
    await register_hosts(control_dsn, SecretBox.from_setting(secret_keys), admins)
    port = free_port()
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(http_client(f"http://{LOOPBACK}:{port}"))
        model = await stack.enter_async_context(model_server())
        api = ForkedApi(
            "api",
            port=port,
            log=folder / "api.log",
            environ=lambda: service.environ(API_PORT=str(port), METRICS_PORT=str(port)),
            host=LOOPBACK,
        )
        metrics_port = free_port()
        worker = ForkedWorker(
            "worker",
            metrics_port=metrics_port,
            log=folder / "worker.log",
            environ=lambda: service.environ(METRICS_PORT=str(metrics_port)),
            queues=every_queue((REGION,)),
        )
        service = RunningService(
            folder,
            control_dsn,
            temporal,
            secret_keys,
            postgres,
            mysql,
            http=http,
            api=api,
            worker=worker,
            model=model,
            namespace=namespace,
            settings=settings,
            others=others,
        )
        stack.push_async_callback(service.stop)
        await service.start("worker")
        await service.start("api")
        yield service


@dataclass(frozen=True)
class SharedServers:
    """What all tests of a process share, for a service of some tests' own: it has its own database, its own accounts on
    the hosts, and its own namespace in Temporal."""

    control: RunningServer
    temporal: TemporalService
    postgres: RunningServer
    mysql: RunningServer | None

    @asynccontextmanager
    async def service(
        self,
        folder: Path,
        *,
        with_mysql: bool = True,
        admins: Mapping[Engine, AdminAddress] | None = None,
        others: Mapping[str, str] = MappingProxyType({}),
        **settings: str,
    ) -> AsyncIterator[RunningService]:
        """The same as `running_service`."""
        mysql, namespace = self.mysql if with_mysql else None, await new_namespace(self.temporal)
        async with running_service(
            folder,
            self.control,
            self.temporal,
            self.postgres,
            mysql,
            admins,
            namespace=namespace,
            others=others,
            **settings,
        ) as made:
            yield made


def http_client(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, timeout=90)


async def _provisioners(postgres: RunningServer, mysql: RunningServer | None) -> dict[Engine, AdminAddress]:
    # This service's own account: another service on the same servers keeps its password.
    name = f"provisioner{uuid4().hex[:8]}"
    admins = {Engine.POSTGRES: await postgres_provisioner(postgres, uuid4().hex, name)}
    if mysql is not None:
        admins[Engine.MYSQL] = await mysql_provisioner(mysql, uuid4().hex, name)
    return admins


async def register_hosts(control_dsn: str, box: SecretBox, admins: Mapping[Engine, AdminAddress]) -> None:
    async with store(control_dsn):
        for engine, admin in admins.items():
            new = NewHost(
                engine=engine,
                region=REGION,
                admin=admin,
                public_host=admin.host,
                public_port=admin.port,
                capacity=_ROOM,
                connection_capacity=_ROOM,
            )
            await add_host(box, new)
