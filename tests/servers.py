"""Real servers for tests, made by the same recipes as the embedded stack's but not durable."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest

from app.core.scram import verifier
from app.engines.tls import PLAIN, TlsPolicy
from app.local.mysql import SUPERUSER as MYSQL_SUPERUSER
from app.local.mysql import MysqlService
from app.local.mysql_data import Flavour, detect_flavour
from app.local.mysql_source import MysqlSource
from app.local.ports import LOOPBACK
from app.local.postgres import DISCREET, PostgresService, find_programs
from app.local.postgres import SUPERUSER as POSTGRES_SUPERUSER
from app.local.processes import ChildProcess
from app.local.services import Service, start
from tests.support.ports import free_port


@dataclass(frozen=True)
class RunningServer:
    """A database server and its full administrator."""

    host: str
    port: int
    user: str
    password: str
    admin_dsn: str
    log: Path
    pid: int
    flavour: str
    """`postgres`, `mysql` or `mariadb`."""
    tls: TlsPolicy = PLAIN
    """How the service reaches it."""


_IN_MEMORY = {"autovacuum_naptime": "1h", "max_wal_size": "96MB", "min_wal_size": "32MB", "checkpoint_timeout": "1h"}
"""Of a PostgreSQL server of which a run has a dozen."""


@asynccontextmanager
async def postgres(folder: Path, **settings: str) -> AsyncIterator[RunningServer]:
    """A PostgreSQL server that logs every statement, but not what it failed with: tests raise errors of hundreds of
    megabytes. Its autovacuum, which looks at each of many databases once in a while, does so seldom, and it keeps
    little of its log: all of it is in memory. `settings` are postgresql.conf's."""
    service = PostgresService(
        "postgres",
        folder=folder,
        port=free_port(),
        log=folder / "postgres.log",
        programs=find_programs(None),
        max_connections=1000,
        durable=False,
        settings={"log_statement": "all"} | _IN_MEMORY | DISCREET | settings,
    )
    async with running(service) as pid:
        await set_password(service.dsn(), POSTGRES_SUPERUSER, service.password)
        yield RunningServer(
            host=LOOPBACK,
            port=service.port,
            user=POSTGRES_SUPERUSER,
            password=service.password,
            admin_dsn=service.dsn(),
            log=service.log,
            pid=pid,
            flavour="postgres",
        )


async def set_password(admin_dsn: str, role: str, password: str) -> None:
    """So that a login costs half the processor time, on both sides: a run has many thousands."""
    connection = await asyncpg.connect(admin_dsn)
    try:
        await connection.execute(f"ALTER ROLE {role} PASSWORD '{verifier(password, iterations=1)}'")
    finally:
        await connection.close()


@asynccontextmanager
async def mysql(folder: Path, program: Path, *options: str) -> AsyncIterator[RunningServer]:
    """A MySQL or MariaDB server, whichever `program` is. `options` are the server's own."""
    flavour: Flavour = await detect_flavour(program)
    service = MysqlService(
        "mysql",
        folder=folder,
        port=free_port(),
        log=folder / "mysql.log",
        program=program,
        flavour=flavour,
        max_connections=1000,
        durable=False,
        options=options,
    )
    async with running(service) as pid:
        yield RunningServer(
            host=LOOPBACK,
            port=service.port,
            user=MYSQL_SUPERUSER,
            password=service.password,
            admin_dsn=service.dsn(),
            log=service.log,
            pid=pid,
            flavour=flavour,
            tls=PLAIN if options else service.tls,
        )


def machine_mysqld() -> Path:
    """The MySQL or MariaDB server of this machine; skips the test without one."""
    program = MysqlSource.of_machine().find()
    if program is None:
        pytest.skip("no MySQL or MariaDB server on this machine; `make test` installs one")
    return program


async def oracle_mysqld() -> Path:
    """Oracle's MySQL server that HEADWATER_MYSQLD names; skips the test without one."""
    given = os.environ.get("HEADWATER_MYSQLD")
    program = MysqlSource.of_machine().find(Path(given)) if given else None
    if program is None or await detect_flavour(program) != "mysql":
        pytest.skip("HEADWATER_MYSQLD names no server of Oracle's MySQL")
    return program


@asynccontextmanager
async def running(service: Service) -> AsyncIterator[int]:
    """The service's process, by its id, stopped at the end of the block."""
    await service.prepare()
    child = await start(service)
    try:
        yield child.pid
    finally:
        await end(service, child)


async def end(service: Service, child: ChildProcess) -> None:
    """Ends a server whose data nobody needs. PostgreSQL has a signal of its own for this: killed, it would leave its
    shared memory behind."""
    if child.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(child.pid, service.command().death_signal)
    await child.stop()
