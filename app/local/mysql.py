"""A MySQL or MariaDB server of the stack, run with the server program that the machine has."""

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path

import aiomysql
import pymysql

from app.engines.tls import PLAIN, TlsMode, TlsPolicy, certificates
from app.local.errors import StackError
from app.local.files import load_or_create_secret
from app.local.mysql_data import Flavour, create_data_folder
from app.local.ports import LOOPBACK
from app.local.processes import Command
from app.local.service_user import service_user
from app.local.services import DATABASE_STOP_SECONDS, Service, server_environ

SUPERUSER = "root"

_EVENTS = ("waits", "stages", "statements", "transactions")
_OPTIONS = (
    f"--bind-address={LOOPBACK}",
    "--socket=mysql.sock",  # in the data folder: the whole path of a socket is limited to 107 bytes
    "--pid-file=mysql.pid",
    "--character-set-server=utf8mb4",
    "--skip-name-resolve",
    "--local-infile=OFF",
    "--event-scheduler=OFF",
    "--skip-log-bin",
    # With a binary log a tenant could create no trigger without this. Set here too, so that stack and deployment behave
    # alike.
    "--log-bin-trust-function-creators=ON",
    "--innodb-file-per-table=ON",
    # For all tenants together, and not part of any tenant's measurement.
    "--innodb-temp-data-file-path=ibtmp1:12M:autoextend:max:4G",
    # A few failed handshakes would block the loopback address.
    "--max-connect-errors=1000000",
)
# What its performance schema would keep beside the transactions of each account: 240 MB instead of 24.
_UNCOUNTED = (
    *(f"max-{what}-instances" for what in ("table", "file", "mutex", "rwlock", "cond", "socket", "program")),
    *(f"events-{what}-history{long}-size" for what in _EVENTS for long in ("", "-long")),
    "digests-size",
    "max-table-handles",
    "max-metadata-locks",
    "max-memory-classes",
    "max-statement-classes",
    "max-prepared-statements-instances",
)
_FLAVOURED: Mapping[Flavour, tuple[str, ...]] = {
    "mariadb": (
        "--skip-symbolic-links",  # or a tenant's DATA DIRECTORY writes outside the data folder
        "--innodb-log-file-size=50331648",
        # Other engines keep temporary tables in files without a limit.
        "--enforce-storage-engine=InnoDB",
        "--tmp-disk-table-size=1073741824",
        "--maximum-tmp-disk-table-size=1073741824",
        # From 11.5 on, including sorts.
        "--loose-max-tmp-session-space-usage=4294967296",
        "--loose-max-tmp-total-space-usage=17179869184",
        # Counts rows by account, and transactions.
        "--userstat=ON",
        "--performance-schema=ON",
        "--performance-schema-instrument=%=OFF",
        "--performance-schema-instrument=transaction=ON",
        "--performance-schema-consumer-events-transactions-current=ON",
        *(f"--loose-performance-schema-{what}=0" for what in _UNCOUNTED),
    ),
    "mysql": (
        "--secure-file-priv=NULL",
        "--disabled-storage-engines=MyISAM,MEMORY,FEDERATED,CSV,ARCHIVE,BLACKHOLE,MERGE",
        "--loose-mysqlx=OFF",
    ),
}
_NOT_DURABLE = ("--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0")


class MysqlService(Service):
    """MySQL or MariaDB with its data under `folder`. Durable by default: only tests may trade safety for speed."""

    def __init__(
        self,
        name: str,
        *,
        folder: Path,
        port: int,
        log: Path,
        program: Path,
        flavour: Flavour,
        max_connections: int = 150,
        durable: bool = True,
        options: tuple[str, ...] = (),
    ) -> None:
        super().__init__(name, port, log)
        self.flavour = flavour
        self._folder = folder.absolute()
        # Separate folders by flavour: neither server can read the other's files.
        self._data = self._folder / f"data-{flavour}"
        self._program = program
        self._options: tuple[str, ...] = (f"--max-connections={max_connections}",)
        self._options += _OPTIONS + _FLAVOURED[flavour] + (() if durable else _NOT_DURABLE) + options

    @property
    def password(self) -> str:
        """The password of the full administrator."""
        return load_or_create_secret(self._folder / "password")

    @property
    def tls(self) -> TlsPolicy:
        """How to reach it once it has started. MySQL accepts a proof of the password only while it has the account
        in memory, and creates its own authority at its first start; MariaDB needs neither on the loopback interface."""
        if self.flavour == "mariadb":
            return PLAIN
        return TlsPolicy(mode=TlsMode.REQUIRE, ca=certificates((self._data / "ca.pem").read_text()))

    def dsn(self, database: str = "mysql") -> str:
        """The full administrator's connection string."""
        return f"mysql://{SUPERUSER}:{self.password}@{LOOPBACK}:{self.port}/{database}"

    async def prepare(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o711)
        if self._data.exists():
            return
        if others := sorted(self._folder.glob("data-*")):
            raise StackError(
                f"{others[0]} was written by another server than {self._program} ({self.flavour}): give "
                "HEADWATER_MYSQLD the server of before, or choose another HEADWATER_HOME"
            )
        # A crash leaves a draft that the next start removes.
        draft = self._folder / "draft"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        data = await create_data_folder(
            self._program, self.flavour, draft, self.log, user=SUPERUSER, password=self.password
        )
        data.rename(self._data)
        shutil.rmtree(draft)

    def command(self) -> Command:
        user = service_user(self._data, self._program, death_signal="KILL")
        # --no-defaults must be first: the machine's own configuration is for another server.
        arguments = ["--no-defaults", f"--datadir={self._data}", f"--port={self.port}", *self._options]
        # Not the machine's folder: a starting server removes the temporary tables of others from there.
        temporary = self._folder / "temporary"
        temporary.mkdir(exist_ok=True, mode=0o700)
        user.own(temporary)
        arguments.append(f"--tmpdir={temporary}")
        if self.flavour == "mariadb":
            # There is no value for "nowhere"; an empty folder that the server may not write to has the same effect.
            nowhere = self._folder / "no-files"
            nowhere.mkdir(exist_ok=True, mode=0o711)
            arguments.append(f"--secure-file-priv={nowhere}")
        argv = (*user.prefix, str(self._program), *arguments)
        return Command(
            argv=argv,
            log=self.log,
            environ=server_environ(),
            folder=Path("/"),
            stop_seconds=DATABASE_STOP_SECONDS,
        )

    async def is_ready(self) -> bool:
        try:
            connection = await aiomysql.connect(
                host=LOOPBACK, port=self.port, user=SUPERUSER, password=self.password, connect_timeout=2
            )
        except (OSError, TimeoutError, pymysql.MySQLError):
            return False
        await connection.ensure_closed()
        return True

    async def is_recovering(self) -> bool:
        # It reports nothing before its recovery is complete, and listens only then.
        try:
            async with asyncio.timeout(2):
                _, writer = await asyncio.open_connection(LOOPBACK, self.port)
        except ConnectionRefusedError:
            return True
        except (OSError, TimeoutError):
            return False
        writer.close()
        return False
