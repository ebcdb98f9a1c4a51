"""A store that fails for as long as a restore lasts, in every way that a store can: the restore says so, nothing is
opened, and nothing is left of one that is given up."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

import httpx
import pytest
import pytest_asyncio

from app.contracts.base import Engine
from app.databases.records import find
from app.hosts.adapters import Adapters
from app.store.session import fetch
from tests.restores.support import backed_up, filled, full, session, visits, waits_for
from tests.support.answers import body_of, data_of
from tests.support.client import Caller
from tests.support.object_stores import MotoService, s3_server
from tests.support.service import RunningService, SharedServers
from tests.support.store import store
from tests.support.store_faults import Fault, StoreFaults, store_faults
from tests.support.waiting import LIMIT_SECONDS, until

REASONS = {
    Fault.FORBIDDEN: "backup_store_refused",
    Fault.SKEWED: "backup_store_refused",
    Fault.ERROR: "backup_store_unavailable",
    Fault.HANG: "backup_store_unavailable",
    Fault.BREAK: "backup_store_unavailable",
}
"""What each is for a reader of the store is in tests/backup_store/test_faults.py."""
IN_THE_RUN = (Fault.FORBIDDEN, Fault.BREAK)
"""One for each reason."""


@dataclass(frozen=True)
class Far:
    """A service whose store is a bucket, and the way to it."""

    caller: Caller
    way: StoreFaults
    adapters: Adapters
    before: frozenset[str]
    """Databases of other tests, by their names on the host."""


@dataclass(frozen=True)
class FarService:
    service: RunningService
    way: StoreFaults


@pytest_asyncio.fixture(scope="module")
async def far_service(
    tmp_path_factory: pytest.TempPathFactory,
    shared_servers: SharedServers,
) -> AsyncIterator[FarService]:
    folder = tmp_path_factory.mktemp("far")
    async with s3_server(MotoService(folder)) as server, store_faults(server.port) as way:
        async with httpx.AsyncClient(timeout=LIMIT_SECONDS) as http:
            (await http.put(f"{server.url}/far")).raise_for_status()
        async with shared_servers.service(
            folder,
            with_mysql=False,
            others={**server.environ, "AWS_ENDPOINT_URL": way.url},
            BACKUP_STORE="s3://far/prefix",
            BACKUP_STORE_TIMEOUT_SECONDS="1",
            DELETION_GRACE_SECONDS="1",
        ) as service:
            yield FarService(service, way)


@pytest_asyncio.fixture
async def far(far_service: FarService) -> AsyncIterator[Far]:
    service, way = far_service.service, far_service.way
    async with store(service.control_dsn):
        adapters = Adapters(service.box)
        try:
            yield Far(await service.caller(), way, adapters, frozenset(await _kept()))
        finally:
            way.decide = lambda _method, _path: None
            await adapters.close()


async def test_every_restore_says_so_and_opens_nothing(far: Far) -> None:
    assert {REASONS[fault] for fault in IN_THE_RUN} == set(REASONS.values())
    await _opens_nothing(far, IN_THE_RUN)


@pytest.mark.soak
async def test_whatever_fails(far: Far) -> None:
    await _opens_nothing(far, tuple(REASONS))


async def _opens_nothing(far: Far, faults: tuple[Fault, ...]) -> None:
    caller = far.caller
    made = await filled(caller, Engine.POSTGRES)
    backup = await backed_up(caller, made)
    source = {"backup_uuid": backup["uuid"]}
    for fault in faults:
        await _fails_for_all_of_it(far, made, source, fault, REASONS[fault])
    assert await visits(made) == 3 + len(faults), "it was open, and is what it was"
    await until(lambda: _is_alone(far, made))
    far.way.decide = lambda _method, _path: None
    again = await caller.created("again", source=source)
    assert await visits(again) == 3


async def _fails_for_all_of_it(
    far: Far, made: dict[str, Any], source: dict[str, str], fault: Fault, reason: str
) -> None:
    caller = far.caller
    far.way.decide = lambda _method, _path: fault
    created = body_of(await caller.create("again", source=source), 202)
    restored = body_of(await caller.post(f"/databases/{made['uuid']}/restorations", source), 202)
    operations = [one["operation"]["uuid"] for one in (created, restored)]
    for operation in operations:
        await until(partial(waits_for, caller, operation, reason))
    assert (await full(caller, created["data"]["uuid"]))["status"] == "provisioning"
    async with session(made) as tenant:
        await tenant.execute("INSERT INTO visits SELECT max(id) + 1, 'meanwhile' FROM visits")
    for operation in operations:
        data_of(await caller.post(f"/operations/{operation}/cancellations", None))
    await until(lambda: _is_gone(UUID(created["data"]["uuid"])))


async def test_a_proof_says_so_and_succeeds_afterwards(far: Far) -> None:
    caller = far.caller
    made = await filled(caller, Engine.POSTGRES)
    backup = await backed_up(caller, made)
    far.way.decide = lambda _method, _path: Fault.FORBIDDEN
    data_of(await caller.post(f"/backups/{backup['uuid']}/restore_tests", None), 202)
    await until(lambda: _proof_is(caller, backup, "running", "refuses the service"))
    far.way.decide = lambda _method, _path: Fault.HANG
    await until(lambda: _proof_is(caller, backup, "running", "can't be reached"))
    far.way.decide = lambda _method, _path: None
    await until(lambda: _proof_is(caller, backup, "proven", ""), timeout=90)
    await until(lambda: _is_alone(far, made))


async def _proof_is(caller: Caller, backup: dict[str, Any], status: str, error: str) -> bool:
    proof = data_of(await caller.get(f"/backups/{backup['uuid']}"))["proof"]
    return proof["status"] == status and error in (proof["error"] or "")


async def _is_gone(database: UUID) -> bool:
    record = await find(database)
    return record is not None and record.destroyed_at is not None and record.provisioned_at is None


async def _is_alone(far: Far, made: dict[str, Any]) -> bool:
    """On its host is this database and no other that came since, no scratch among them."""
    rows = await fetch("SELECT host_id, engine_name FROM databases WHERE uuid = $1", UUID(made["uuid"]))
    adapter = await far.adapters.of_host(rows[0]["host_id"])
    ours = {row["engine_name"] for row in await fetch("SELECT engine_name FROM databases")}
    there = {one.name for one in await adapter.list_tenants()} & ours
    return await _kept() - far.before == there - far.before == {rows[0]["engine_name"]}


async def _kept() -> set[str]:
    return {row["engine_name"] for row in await fetch("SELECT engine_name FROM databases WHERE destroyed_at IS NULL")}
