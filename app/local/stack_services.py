"""The services of a stack: which there are, their ports and their data folders."""

import os
from collections.abc import Mapping, Set
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import UNSET

from app.contracts.base import Engine
from app.core.metrics.page import PATH
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.local import postgres, temporal
from app.local.errors import StackError
from app.local.files import load_or_create_secret
from app.local.home import Home
from app.local.mysql import MysqlService
from app.local.mysql_data import detect_flavour
from app.local.ports import LOOPBACK, PortAllocator
from app.local.postgres import PostgresService
from app.local.python_services import ApiService, WorkerService, every_queue
from app.local.screen import Screen
from app.local.seed import ControlDsns
from app.local.spare import Spare
from app.local.stack_file import StackFile, StackHost
from app.local.temporal import TemporalService

_CONTROL_PORT = 15_431
_SERVICE_ROLE = "headwater_service"
_METRICS_PORT = 9464
_ENGINE_PORTS = {Engine.POSTGRES: 15_432, Engine.MYSQL: 13_306}
"""The ports for the first region; those of further regions follow."""

_ENGINE_CONNECTIONS = 4_000
"""Each is allocated several times, and a database gets ten to four hundred. They cost a PostgreSQL server some
150 MB of shared memory."""
_OWN_CONNECTIONS = 100
"""Connections beside those of tenants: for the service's own logins, as the administrator and to try a tenant's."""
_RESERVED = {"reserved_connections": "20"}
"""The part of those that is, on PostgreSQL, for the administrator alone."""


def control_connections(regions: int) -> int:
    """The connections of our own PostgreSQL: for an API, and a worker at its maximum, whose activities on each
    region's hosts use up to 65, its backups 24 and its restores 32; the rest is for the command line and an
    operator."""
    return 120 + 125 * regions


@dataclass(frozen=True)
class EngineServer:
    """An engine host. `last_port` is its port in the last run of the stack that had it."""

    engine: Engine
    region: str
    server: PostgresService | MysqlService
    last_port: int | None

    def entry(self) -> StackHost:
        """Its entry in stack.json."""
        return StackHost(
            engine=self.engine,
            region=self.region,
            host=LOOPBACK,
            port=self.server.port,
            admin_dsn=self.server.dsn(),
            flavour=self.server.flavour if isinstance(self.server, MysqlService) else UNSET,
        )


class StackServices:
    """All services, not started yet."""

    def __init__(
        self,
        settings: Settings,
        home: Home,
        screen: Screen,
        ports: PortAllocator,
        last: StackFile | None,
        marks: Mapping[str, str],
    ) -> None:
        """`marks` are those of the stack's processes."""
        self._settings = settings
        self._home = home
        self._screen = screen
        self._ports = ports
        self._last = last
        self.hosts: list[EngineServer] = []
        self._secret_keys = settings.secret_keys or home.secret_keys()
        try:
            self.secret_box = SecretBox.from_setting(self._secret_keys)
        except ValueError as error:
            raise StackError(str(error)) from error
        programs = postgres.find_programs(settings.postgres_bin)
        room = control_connections(len(settings.regions))
        self.control = self._postgres("control-postgres", programs, self._control_port(), max_connections=room)
        for index, region in enumerate(settings.regions):
            name = f"postgres-{region}"
            port = self._host_port(Engine.POSTGRES, region, index)
            server = self._postgres(
                name,
                programs,
                port,
                max_connections=_ENGINE_CONNECTIONS + _OWN_CONNECTIONS,
                settings=postgres.DISCREET | _RESERVED,
            )
            self._add_host(Engine.POSTGRES, region, server)
        self.temporal = self._temporal()
        self.spare = Spare(home.log("spare"), marks)
        self.api = self._api()
        self.worker = self._worker()

    async def add_mysql(self, program: Path) -> None:
        """Adds an engine host of MySQL or MariaDB in every region."""
        flavour = await detect_flavour(program)
        for index, region in enumerate(self._settings.regions):
            name = f"mysql-{region}"
            server = MysqlService(
                name,
                folder=self._home.folder / name,
                port=self._host_port(Engine.MYSQL, region, index),
                log=self._home.log(name),
                program=program,
                flavour=flavour,
                max_connections=_ENGINE_CONNECTIONS + _OWN_CONNECTIONS,
            )
            self._add_host(Engine.MYSQL, region, server)

    def metrics_urls(self) -> list[str]:
        """The metrics pages of our own processes. The API serves them on its own port if only this machine can reach
        it."""
        of_api = [f"{self.api.url}{PATH}"] if self._settings.api_host == LOOPBACK else []
        return [*of_api, f"http://{LOOPBACK}:{self.worker.port}{PATH}"]

    @property
    def control_dsns(self) -> ControlDsns:
        password = load_or_create_secret(self._home.folder / self.control.name / "service-password")
        return ControlDsns(
            admin=self.control.dsn(),
            service=f"postgresql://{_SERVICE_ROLE}:{password}@{LOOPBACK}:{self.control.port}/{postgres.SUPERUSER}",
        )

    def environ(self, metrics_port: int | None) -> dict[str, str]:
        """The environment of our own processes: the operator's settings, and the addresses of this stack."""
        return {
            **os.environ,
            "HEADWATER_METRICS_PORT": str(metrics_port or ""),
            "HEADWATER_HOME": str(self._home.folder),
            "HEADWATER_API_PORT": str(self.api.port),
            "HEADWATER_CONTROL_DSN": self.control_dsns.service,
            # Whoever takes a process over doesn't find it there.
            "HEADWATER_CONTROL_ADMIN_DSN": "",
            "HEADWATER_TEMPORAL_ADDRESS": self.temporal.address,
            "HEADWATER_TEMPORAL_UI_URL": self._settings.temporal_ui_url or f"http://{LOOPBACK}:{self.temporal.ui_port}",
            "HEADWATER_SECRET_KEYS": self._secret_keys,
            "PYTHONUNBUFFERED": "1",
        }

    def _postgres(
        self,
        name: str,
        programs: Path,
        port: int,
        *,
        max_connections: int,
        settings: Mapping[str, str] | None = None,
    ) -> PostgresService:
        return PostgresService(
            name,
            folder=self._home.folder / name,
            port=port,
            log=self._home.log(name),
            programs=programs,
            max_connections=max_connections,
            settings=settings,
        )

    def _temporal(self) -> TemporalService:
        return TemporalService(
            "temporal",
            port=self._port("temporal", self._settings.temporal_port),
            ui_port=self._port("the Temporal UI", self._settings.temporal_ui_port),
            log=self._home.log("temporal"),
            program=temporal.find_program(),
            database=self._home.folder / "temporal" / "temporal.db",
            namespace=self._settings.temporal_namespace,
        )

    def _api(self) -> ApiService:
        return ApiService(
            "api",
            port=self._port("api", self._settings.api_port),
            log=self._home.log("api"),
            environ=lambda: self.environ(self.api.port if self._settings.api_host == LOOPBACK else None),
            host=self._settings.api_host,
            spare=self.spare,
        )

    def _worker(self) -> WorkerService:
        return WorkerService(
            "worker",
            metrics_port=self._port("the worker's metrics page", self._settings.metrics_port or _METRICS_PORT),
            log=self._home.log("worker"),
            environ=lambda: self.environ(self.worker.port),
            queues=every_queue(self._settings.regions),
            spare=self.spare,
        )

    def _add_host(self, engine: Engine, region: str, server: PostgresService | MysqlService) -> None:
        self.hosts.append(EngineServer(engine, region, server, self._last_port(engine, region)))

    def _control_port(self) -> int:
        last = urlsplit(self._last.control_dsn).port if self._last else None
        return self._port("control-postgres", last or _CONTROL_PORT)

    def _host_port(self, engine: Engine, region: str, index: int) -> int:
        # Tenants keep their connection strings: a host keeps its port if it can, and gets none of one that may be back.
        others = {host.port for host in self._known_hosts() if (host.engine, host.region) != (engine, region)}
        used = others | {host.server.port for host in self.hosts}
        unused = next(port for port in count(_ENGINE_PORTS[engine] + index) if port not in used)
        return self._port(f"{engine}-{region}", self._last_port(engine, region) or unused, others)

    def _last_port(self, engine: Engine, region: str) -> int | None:
        ports = (host.port for host in self._known_hosts() if (host.engine, host.region) == (engine, region))
        return next(ports, None)

    def _known_hosts(self) -> list[StackHost]:
        return self._last.known_hosts() if self._last else []

    def _port(self, what: str, preferred: int, reserved: Set[int] = frozenset()) -> int:
        port = self._ports.allocate(preferred, reserved)
        if port != preferred:
            self._screen.say(f"port {preferred} is taken: {what} listens on {port}")
        return port
