"""Counters of a server that was started again, or has crashed, are not compared with those of before."""

import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import asyncpg
import pytest

from app.contracts.base import Engine
from app.engines.base import AdminAddress, Counters, EngineError
from app.engines.registry import open_adapter
from app.engines.tls import PLAIN
from app.local.mysql import SUPERUSER as MYSQL_SUPERUSER
from app.local.mysql import MysqlService
from app.local.mysql_data import detect_flavour
from app.local.ports import LOOPBACK
from app.local.postgres import SUPERUSER as POSTGRES_SUPERUSER
from app.local.postgres import PostgresService, find_programs
from app.local.services import start
from app.usage.metrics.differences import Look, between
from tests import servers
from tests.support.ports import free_port
from tests.support.waiting import until

Service = PostgresService | MysqlService


async def _postgres(folder: Path) -> PostgresService:
    return PostgresService(
        "postgres",
        folder=folder,
        port=free_port(),
        log=folder / "postgres.log",
        programs=find_programs(None),
        durable=False,
    )


async def _mysql(folder: Path, program: Path) -> MysqlService:
    return MysqlService(
        "mysql",
        folder=folder,
        port=free_port(),
        log=folder / "mysql.log",
        program=program,
        flavour=await detect_flavour(program),
        durable=False,
    )


async def _machines(folder: Path) -> MysqlService:
    return await _mysql(folder, servers.machine_mysqld())


async def _oracles(folder: Path) -> MysqlService:
    return await _mysql(folder, await servers.oracle_mysqld())


SERVICES: dict[str, Callable[[Path], Awaitable[Service]]] = {
    "postgres": _postgres,
    "mysql": _machines,
    "oracle": _oracles,
}


class Restartable:
    """A server of this test's own, and an adapter on it."""

    def __init__(self, service: Service) -> None:
        self.service = service
        is_postgres = isinstance(service, PostgresService)
        address = AdminAddress(
            host=LOOPBACK,
            port=service.port,
            user=POSTGRES_SUPERUSER if is_postgres else MYSQL_SUPERUSER,
            password=service.password,
            database="postgres" if is_postgres else None,
            tls=service.tls if isinstance(service, MysqlService) else PLAIN,
        )
        self._adapter = open_adapter(Engine.POSTGRES if is_postgres else Engine.MYSQL, address)

    async def start(self) -> None:
        self._child = await start(self.service)

    async def kill(self) -> None:
        await self._child.kill()

    async def close(self) -> None:
        await self._adapter.close()
        await servers.end(self.service, self._child)

    async def look(self) -> Look:
        async def answered() -> Counters | None:
            try:
                return (await self._adapter.counters(["postgres"]))["postgres"]
            except EngineError:
                return None

        counters = await until(answered)
        assert counters is not None
        return Look(place="", counters=counters)


@pytest.fixture(params=SERVICES)
async def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Restartable]:
    service = await SERVICES[request.param](tmp_path_factory.mktemp("restarted"))
    await service.prepare()
    made = Restartable(service)
    await made.start()
    try:
        yield made
    finally:
        await made.close()


async def test_counters_begin_anew_with_a_start_and_with_a_crash(server: Restartable) -> None:
    before = await server.look()
    assert between(before, await server.look()) is not None
    if isinstance(server.service, MysqlService):
        # It tells its start by the second.
        await until(lambda: time.time() > float(before.counters.began) + 1)
    if isinstance(server.service, PostgresService):
        await _crash(server.service)
        recovered = await server.look()
        assert between(before, recovered) is None, "all sessions of a server that lost one begin anew"
        before = recovered
    await server.kill()
    await server.start()
    assert between(before, await server.look()) is None


async def _crash(service: PostgresService) -> None:
    """A server process dies: the server ends all others, recovers, and goes on as the same process."""
    connection, bystander = await asyncpg.connect(service.dsn()), await asyncpg.connect(service.dsn())
    os.kill(await connection.fetchval("SELECT pg_backend_pid()"), signal.SIGKILL)
    with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        await connection.execute("SELECT pg_sleep(60)")
    # Logins go on until the server has noticed.
    await until(bystander.is_closed)
    await until(service.is_ready)
