"""Databases of a lost host come back on another one."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest
import pytest_asyncio

from app.contracts.base import Engine
from app.hosts.adapters import Adapters
from app.hosts.service import NewHost, add_host
from app.local.temporal import TemporalService
from app.restores import records
from app.restores.evacuation import EvacuationStatus, evacuate
from app.store.session import fetch
from tests import servers
from tests.restores.support import backed_up, filled, full, session, visits
from tests.servers import RunningServer
from tests.support.answers import data_of
from tests.support.namespaces import new_namespace
from tests.support.provisioners import postgres_provisioner
from tests.support.service import REGION, RunningService, running_service
from tests.support.store import store
from tests.support.waiting import until


@pytest_asyncio.fixture
async def pair(
    tmp_path_factory: pytest.TempPathFactory,
    control_server: RunningServer,
    temporal_server: TemporalService,
    postgres_server: RunningServer,
) -> AsyncIterator[tuple[RunningService, RunningServer]]:
    """A service with one host, and the server of another."""
    folder, namespace = tmp_path_factory.mktemp("evacuated"), await new_namespace(temporal_server)
    async with (
        servers.postgres(tmp_path_factory.mktemp("other")) as other,
        running_service(folder, control_server, temporal_server, postgres_server, None, namespace=namespace) as service,
        store(service.control_dsn),
    ):
        yield service, other


async def test_with_name_users_and_passwords_from_the_newest_backup(
    pair: tuple[RunningService, RunningServer],
) -> None:
    service, other = pair
    caller = await service.caller()
    made = await filled(caller, Engine.POSTGRES)
    path = f"/databases/{made['uuid']}"
    user = data_of(await caller.post(f"{path}/users", {"name": "reports", "access": "read_only"}), 201)
    async with session(made) as tenant:
        await tenant.execute("ALTER TABLE visits ENABLE ROW LEVEL SECURITY")
        await tenant.execute("CREATE POLICY everybody ON visits USING (true)")
        restricted = f"CREATE POLICY few ON visits AS RESTRICTIVE TO {user['db_username']} USING (id < 2)"
        await tenant.execute(restricted)
    rotated = data_of(await caller.post(f"{path}/credential_rotations", {"overlap_seconds": 0}))
    backup = await backed_up(caller, made)
    without = await filled(caller, Engine.POSTGRES)
    [host] = await fetch("SELECT id FROM engine_hosts")
    assert {one.status for one in await evacuate(host["id"])} == {
        EvacuationStatus.NO_ROOM,
        EvacuationStatus.NO_BACKUP,
    }, "there is no other host yet"
    await _add(service, other)
    begun = {str(one.database): one for one in await evacuate(host["id"])}
    assert begun[without["uuid"]].status is EvacuationStatus.NO_BACKUP
    assert str(begun[made["uuid"]].backup) == backup["uuid"]
    assert begun[made["uuid"]].age_seconds is not None
    await until(lambda: _status(host["id"], made["uuid"], EvacuationStatus.MOVED))
    after = await full(caller, made["uuid"])
    assert (after["port"], after["status"]) == (other.port, "active")
    assert (after["db_username"], after["db_password"]) == (rotated["db_username"], rotated["db_password"])
    assert await visits(after) == 3
    moved = {"connection_string": user["connection_string"].replace(f":{made['port']}/", f":{other.port}/")}
    assert await visits(after | moved) == 2, "its users are there, and read no more than before"
    events = await fetch("SELECT type FROM events WHERE type = 'database.moved'")
    assert len(events) == 1
    assert await visits(without) == 3, "what has no backup stays where it is"
    await _is_closed_on(service, host["id"], after["db_name"])
    assert await records.is_left_behind(UUID(made["uuid"]), host["id"]), "nobody removes what may be newer"
    assert await records.give_up_left_behind(host["id"]) == 1
    async with session(after) as tenant:
        await tenant.execute("CREATE TABLE later (id integer)")


async def _add(service: RunningService, other: RunningServer) -> None:
    admin = await postgres_provisioner(other, "another-password")
    new = NewHost(engine=Engine.POSTGRES, region=REGION, admin=admin, public_host=other.host, public_port=other.port)
    await add_host(service.box, new)


async def _status(host_id: int, database: str, status: EvacuationStatus) -> bool:
    return any(str(one.database) == database and one.status is status for one in await evacuate(host_id))


async def _is_closed_on(service: RunningService, host_id: int, name: str) -> None:
    adapters = Adapters(service.box)

    async def closed() -> bool:
        adapter = await adapters.of_host(host_id)
        found = next(one for one in await adapter.list_tenants() if one.name == name)
        return found.has_database and not found.admits

    try:
        await until(closed)
    finally:
        await adapters.close()
