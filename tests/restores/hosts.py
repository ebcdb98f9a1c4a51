"""Another host than those that tests share, which may be lost."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from app.contracts.base import Engine
from app.hosts.registration import NewHost, add_host
from tests import servers
from tests.servers import RunningServer
from tests.support.provisioners import mysql_provisioner, postgres_provisioner
from tests.support.service import REGION, RunningService


@asynccontextmanager
async def another_server(engine: Engine, folder: Path) -> AsyncIterator[RunningServer]:
    if engine is Engine.POSTGRES:
        async with servers.postgres(folder) as server:
            yield server
    else:
        async with servers.mysql(folder, servers.machine_mysqld()) as server:
            yield server


async def add_server(service: RunningService, engine: Engine, other: RunningServer) -> None:
    """Registers it as a host of the service, to whose database this process is connected."""
    provisioner = postgres_provisioner if engine is Engine.POSTGRES else mysql_provisioner
    admin = await provisioner(other, "another-password")
    new = NewHost(engine=engine, region=REGION, admin=admin, public_host=other.host, public_port=other.port)
    await add_host(service.box, new)
