"""The servers of the API's benchmarks: a control PostgreSQL, an API process, and a bare process beside it."""

import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from app.auth.keys import KeyControls, create_key
from app.auth.users import create_user
from app.core.secrets import new_key_setting
from app.local.ports import LOOPBACK, free_port
from app.local.postgres import PostgresService, find_programs
from app.local.processes import ChildProcess, Command
from app.local.python_services import ApiService
from app.local.services import Service, start
from app.store.migrate import migrate
from app.store.session import connected

_UNLIMITED = KeyControls(requests_per_minute=2_000_000_000)


class BareService(ApiService):
    """The bare handler's process. Like the API it reports when it is ready."""

    def __init__(self, *, port: int, log: Path, dsn: str) -> None:
        super().__init__("bare", port=port, log=log, environ=lambda: dict(os.environ), host=LOOPBACK)
        self._dsn = dsn

    def command(self) -> Command:
        argv = (sys.executable, "-m", "benchmarks.bare", self._dsn, str(self.port))
        return Command(argv=argv, log=self.log, environ=dict(os.environ))


@dataclass(frozen=True)
class Servers:
    """Base addresses, and the DSN of our own database, to which this process is connected."""

    api: str
    bare: str
    dsn: str
    api_pid: int


@dataclass(frozen=True)
class Account:
    team_id: int
    api_key: str


@asynccontextmanager
async def running_servers() -> AsyncIterator[Servers]:
    """With the embedded stack's settings, in a temporary folder."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headwater-bench-")))
        os.chmod(folder, 0o711)  # PostgreSQL runs as another user where we are root
        control = PostgresService(
            "control",
            folder=folder / "control",
            port=free_port(),
            log=folder / "control.log",
            programs=find_programs(None),
            max_connections=200,
        )
        await control.prepare()
        dsn = control.dsn()
        environ = {
            **os.environ,
            "HEADWATER_CONTROL_DSN": dsn,
            "HEADWATER_SECRET_KEYS": new_key_setting(),
            "HEADWATER_API_PORT": str(free_port()),
            "HEADWATER_TEMPORAL_ADDRESS": f"{LOOPBACK}:{free_port()}",
        }
        api = ApiService(
            "api",
            port=int(environ["HEADWATER_API_PORT"]),
            log=folder / "api.log",
            environ=lambda: environ,
            host=LOOPBACK,
        )
        bare = BareService(port=free_port(), log=folder / "bare.log", dsn=dsn)
        await _start(stack, control)
        api_process = await _start(stack, api)
        await _start(stack, bare)
        await stack.enter_async_context(connected(dsn))
        await migrate()
        yield Servers(api.url, bare.url, dsn, api_process.pid)


async def _start(stack: AsyncExitStack, service: Service) -> ChildProcess:
    child = await start(service)
    stack.push_async_callback(child.stop)
    return child


async def account(name: str) -> Account:
    """A user with a team of the pro tier, and a key without an effective rate limit."""
    user = await create_user(email=f"{name}@example.com", name=name, tier="pro")
    key = await create_key(user_id=user.user_id, name=name, scopes=["databases:*"], controls=_UNLIMITED)
    return Account(user.team_id, key.api_key)
