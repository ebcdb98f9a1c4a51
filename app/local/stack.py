"""The embedded stack from start to end. All services are real servers, and children of this process."""

import asyncio
import resource
import signal
from collections.abc import Callable

from msgspec import UNSET

from app.contracts.base import Engine
from app.core.errors import AppError
from app.core.secrets import InvalidSecret
from app.core.settings import Settings
from app.local import provisioner, stack_file
from app.local import stale_processes as leftovers
from app.local.dump_tools import ensure_dump_tool
from app.local.errors import StackError
from app.local.files import load_or_create_secret
from app.local.home import Home
from app.local.mysql_source import MysqlSource
from app.local.ports import LOOPBACK, PortAllocator
from app.local.screen import Screen
from app.local.seed import RemovedHost, SeedHost, operator_link, seed
from app.local.stack_file import StackFile, StackHost
from app.local.stack_services import EngineServer, StackServices
from app.local.supervisor import Supervisor, all_of
from app.local.welcome import welcome
from app.store.migrate import MigrationFailed

OnReady = Callable[[StackFile], None]
_OPEN_FILES = 65_536
_FILES_CHECK_SECONDS = 1


def run(settings: Settings, *, mysql: MysqlSource | None = None, on_ready: OnReady | None = None) -> int:
    """Runs the stack until Ctrl-C or SIGTERM, and stops everything however it ends. Calls `on_ready` when it is ready.
    Returns the exit code."""
    screen = Screen()
    _allow_open_files()
    try:
        return asyncio.run(_main(settings, mysql or MysqlSource.of_machine(), screen, on_ready))
    except StackError as error:
        screen.fail(str(error))
        return 1


async def _main(settings: Settings, mysql: MysqlSource, screen: Screen, on_ready: OnReady | None) -> int:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    home = Home(settings.home)
    with home.locked():
        try:
            await Stack(settings, home, screen, mysql, on_ready).serve()
        except asyncio.CancelledError:
            screen.say("stopped; the data is kept")
    return 0


def _allow_open_files() -> None:
    # Shells start programs with a limit of 1,024, too few for servers with thousands of connections.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < enough:
        resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))


class Stack:
    """One run of the stack in a home that is locked for it."""

    def __init__(
        self, settings: Settings, home: Home, screen: Screen, mysql: MysqlSource, on_ready: OnReady | None
    ) -> None:
        self._settings = settings
        self._home = home
        self._screen = screen
        self._mysql = mysql
        self._on_ready = on_ready
        self._last = stack_file.read_last(home.folder)
        self._ports = PortAllocator()
        self._api_key = ""
        self._ready = False
        self._out_of_date = False
        """Whether stack.json is out of date, because it could not be written."""
        self._marks = {leftovers.MARK: str(home.folder)}
        self._supervisor = Supervisor(screen, self._ports, marks=self._marks)

    async def serve(self) -> None:
        """Never returns; ends by cancellation or an error, with every service stopped."""
        stack_file.withdraw(self._home.folder)
        if ended := await leftovers.end(self._home.folder):
            self._screen.say(f"ended processes that an earlier stack left behind: {', '.join(map(str, ended))}")
        self._home.set_logs_aside()
        parts = await self._plan()
        self._supervisor.changed = lambda: self._write(parts)
        try:
            await all_of(self._run(parts), self._tend_files(parts))
        finally:
            stack_file.withdraw(self._home.folder)
            with self._screen.waiting("stopping"):
                await parts.spare.stop()
                await self._supervisor.stop()

    async def _run(self, parts: StackServices) -> None:
        await self._start(parts)
        self._ready = True
        self._write(parts)
        if self._on_ready is not None:
            self._on_ready(self._stack_file(parts))
        link = await operator_link(parts.control_dsns.service, self._settings, parts.api.url)
        self._screen.say(welcome(self._stack_file(parts), parts.metrics_urls(), self._home.folder, link))
        await all_of(self._supervisor.run_forever(), parts.spare.keep())

    async def _tend_files(self, parts: StackServices) -> None:
        """Limits the logs of all services, which append to files that this process has opened for them, and writes
        stack.json if that is still to be done."""
        while True:
            await asyncio.sleep(_FILES_CHECK_SECONDS)
            self._home.bound_logs(self._settings.log_file_bytes)
            if self._out_of_date:
                self._write(parts)

    async def _plan(self) -> StackServices:
        log = self._home.log("install-mysql")
        mysqld = await self._mysql.find_or_install(self._settings.mysqld, self._screen, log)
        parts = StackServices(self._settings, self._home, self._screen, self._ports, self._last, self._marks)
        if mysqld is None:
            self._screen.say("no MySQL server: this stack runs with PostgreSQL alone")
        else:
            await ensure_dump_tool(mysqld, self._screen, log)
            await parts.add_mysql(mysqld)
        return parts

    async def _start(self, parts: StackServices) -> None:
        launch = self._supervisor.launch
        servers = [parts.control, *(host.server for host in parts.hosts), parts.temporal]
        await all_of(*(launch(server, f"{LOOPBACK}:{server.port} to answer") for server in servers))
        with self._screen.waiting("registering the engine hosts"):
            admins = await asyncio.gather(*(self._provisioner(host) for host in parts.hosts))
            last_key = self._last.api_key if self._last else None
            try:
                self._api_key = await seed(
                    parts.control_dsns, parts.secret_box, admins, self._removed_hosts(parts), last_key
                )
            except AppError as error:
                raise StackError(error.message) from error
            except MigrationFailed as error:
                raise StackError(str(error)) from error
            except InvalidSecret as error:
                raise StackError(
                    f"the secrets in {self._home.folder} can't be opened: {error}. Set HEADWATER_SECRET_KEYS to its "
                    "former value, at most with a new key in front, or leave it unset if it never was set"
                ) from error
        # From here on tenants may have addresses with these ports. They are stored before the start is complete, or the
        # next start could take a moved host for another.
        stack_file.remember(self._home.folder, self._stack_file(parts))
        await all_of(
            launch(parts.api, f"{parts.api.url}/health/ready to answer 200"),
            launch(parts.worker, "its first poll"),
        )

    def _removed_hosts(self, parts: StackServices) -> list[RemovedHost]:
        return [
            RemovedHost(engine=Engine(host.engine), host=host.host, port=host.port)
            for host in self._absent_hosts(parts)
        ]

    def _absent_hosts(self, parts: StackServices) -> list[StackHost]:
        present = {(host.engine, host.region) for host in parts.hosts}
        known = self._last.known_hosts() if self._last else []
        return [host for host in known if (host.engine, host.region) not in present]

    async def _provisioner(self, host: EngineServer) -> SeedHost:
        password = load_or_create_secret(self._home.folder / host.server.name / "provisioner-password")
        admin = await provisioner.create(host.server, password, self._settings.postgres_extensions)
        moved = host.last_port if host.last_port != host.server.port else None
        return SeedHost(
            engine=host.engine,
            region=host.region,
            admin=admin,
            last_port=moved,
            capacity=self._settings.host_capacity,
            connection_overcommit=self._settings.connection_overcommit,
        )

    def _write(self, parts: StackServices) -> None:
        """Writes stack.json, later where it can't be done now: a full disk is no reason to stop services that run."""
        if not self._ready:
            return
        try:
            stack_file.write(self._home.folder, self._stack_file(parts))
        except OSError as error:
            if not self._out_of_date:
                self._screen.say(f"{stack_file.NAME} is out of date, because it can't be written: {error.strerror}")
            self._out_of_date = True
        else:
            if self._out_of_date:
                self._screen.say(f"{stack_file.NAME} is written again")
            self._out_of_date = False

    def _stack_file(self, parts: StackServices) -> StackFile:
        return StackFile(
            api_url=parts.api.url,
            api_key=self._api_key,
            temporal_address=parts.temporal.address,
            temporal_namespace=self._settings.temporal_namespace,
            temporal_ui_url=f"http://{LOOPBACK}:{parts.temporal.ui_port}",
            control_dsn=parts.control_dsns.service,
            control_admin_dsn=parts.control_dsns.admin,
            hosts=[host.entry() for host in parts.hosts],
            processes=self._supervisor.processes,
            absent_hosts=self._absent_hosts(parts) or UNSET,
        )
