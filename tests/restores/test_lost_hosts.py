"""What databases of a lost host are made again from, and that nothing is kept of them before they are whole."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowExecutionStatus

from activities.engine import EngineActivitiesOnHosts
from app.backups import ends
from app.backups.final import FinalBackups
from app.backups.restores import records
from app.backups.restores.evacuation import Evacuated, EvacuationStatus, evacuate
from app.backups.retention import expire, make_room
from app.backups.scheduling import request_due
from app.contracts.backups import BackupKind, BackupStatus
from app.contracts.base import Engine
from app.contracts.queues import apply_workflow_id, backup_workflow_id, restore_workflow_id
from app.databases.passwords import tenant_of
from app.databases.records import DatabaseRecord, NotWanted
from app.engines.dumping import Content, ContentKind
from app.engines.errors import HostUnavailable
from app.hosts.adapters import Adapters
from app.hosts.changes import drain_host, undrain_host
from app.hosts.slots import HostSlots
from app.outbox.provisionings import RunningProvisionings
from app.quotas.plans import DEFAULT_PLANS
from app.store.locks import database_lock
from app.store.session import fetch, transaction
from tests.applications.support import TWO_TABLES, ask, tables
from tests.backups.support import TERMS, add_backup, database_row, status_of
from tests.restores.conftest import ENGINES
from tests.restores.hosts import add_server, another_server
from tests.restores.support import backed_up, damage, filled, full, session, visits
from tests.servers import RunningServer
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.service import RunningService, SharedServers
from tests.support.store import store
from tests.support.waited import ended
from tests.support.waiting import until

ON_POSTGRES = pytest.mark.parametrize("engine", ENGINES[:1])
ON_BOTH = pytest.mark.parametrize("engine", ENGINES)


@pytest_asyncio.fixture(scope="module")
async def service(
    tmp_path_factory: pytest.TempPathFactory, shared_servers: SharedServers
) -> AsyncIterator[RunningService]:
    """One of its own: the other hosts that it has go with the tests."""
    async with shared_servers.service(tmp_path_factory.mktemp("lost"), QUOTA_INTERVAL_SECONDS="1000000") as running:
        yield running


@dataclass
class Place:
    """A host that is to be lost, and the other one of its engine."""

    service: RunningService
    caller: Caller
    engine: Engine
    server: RunningServer
    lost: int
    other: int
    adapters: Adapters

    async def filled(self) -> dict[str, Any]:
        """A database on the host that is to be lost."""
        await drain_host(self.other)
        try:
            made = await filled(self.caller, self.engine)
        finally:
            await undrain_host(self.other)
        assert made["port"] == self.server.port
        return made

    async def evacuate(self, made: dict[str, Any]) -> Evacuated:
        """What becomes of the database."""
        [found] = [one for one in await evacuate(self.lost) if str(one.database) == made["uuid"]]
        return found

    async def evacuated(self, made: dict[str, Any], status: EvacuationStatus) -> Evacuated:
        """The same, at its end."""

        async def look() -> Evacuated | None:
            found = await self.evacuate(made)
            return None if found.status is EvacuationStatus.MOVING else found

        found = await until(look)
        assert found is not None, "it was waited for"
        assert found.status is status, await fetch("SELECT type, status, reason::text FROM operations ORDER BY id")
        return found

    async def given_up(self, made: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The database can't be made from its newest backup, and is empty on its new host. Returns an older one, which
        is whole, and the newest."""
        older = await backed_up(self.caller, made)
        newest = await backed_up(self.caller, made)
        damage(self.service, newest)
        failed = await self.evacuated(made, EvacuationStatus.FAILED)
        assert str(failed.backup) == newest["uuid"]
        await self.is_shut(made)
        return older, newest

    async def is_shut(self, made: dict[str, Any]) -> None:
        seen = await full(self.caller, made["uuid"])
        assert seen["status"] == "paused"
        assert (await row_of(made)).restoring_at is not None

    async def restored(self, made: dict[str, Any], backup: dict[str, Any]) -> dict[str, Any]:
        """The operation of a restore in place, at its end."""
        answer = await self.caller.post(f"/databases/{made['uuid']}/restorations", {"backup_uuid": backup["uuid"]})
        return await ended(self.caller, body_of(answer, 202)["operation"]["uuid"])

    async def is_closed(self, workflow_id: str) -> bool:
        """Whether that workflow has come to its end."""
        client = await Client.connect(self.service.temporal.address, namespace=self.service.namespace)
        return (await client.get_workflow_handle(workflow_id).describe()).status is WorkflowExecutionStatus.COMPLETED


@pytest_asyncio.fixture
async def place(
    tmp_path_factory: pytest.TempPathFactory, service: RunningService, engine: Engine
) -> AsyncIterator[Place]:
    async with another_server(engine, tmp_path_factory.mktemp("other")) as server, store(service.control_dsn):
        [home] = await fetch("SELECT id FROM engine_hosts WHERE engine = $1 ORDER BY id LIMIT 1", engine.value)
        await add_server(service, engine, server)
        [host] = await fetch("SELECT id FROM engine_hosts WHERE port = $1", server.port)
        adapters = Adapters(service.box)
        try:
            caller = await service.caller()
            yield Place(service, caller, engine, server, lost=host["id"], other=home["id"], adapters=adapters)
        finally:
            await drain_host(host["id"])
            await adapters.close()


async def row_of(made: dict[str, Any]) -> DatabaseRecord:
    return await database_row(made["uuid"])


async def kinds_of(made: dict[str, Any]) -> list[str]:
    """Of its backups, in the order in which they were asked for."""
    rows = await fetch("SELECT kind FROM backups WHERE database_uuid = $1 ORDER BY id", UUID(made["uuid"]))
    return [row["kind"] for row in rows]


@ON_POSTGRES
async def test_nothing_is_backed_up_before_it_is_whole(place: Place) -> None:
    made = await place.filled()
    older, newest = await place.given_up(made)
    before = await kinds_of(made)
    await fetch(
        "INSERT INTO backup_policies (database_id, backup_at) VALUES ($1, now())"
        " ON CONFLICT (database_id) DO UPDATE SET backup_at = now()",
        (await row_of(made)).id,
    )
    assert not await request_due(TERMS, UUID(made["uuid"]))
    assert await kinds_of(made) == before
    asked = body_of(await place.caller.post(f"/databases/{made['uuid']}/backups", {}), 202)
    # It has its turn after the other one, and was passed over.
    await backed_up(place.caller, await filled(place.caller, place.engine))
    assert data_of(await place.caller.get(f"/backups/{asked['data']['uuid']}"))["status"] == "pending"
    begun = await add_backup(await row_of(made), status=BackupStatus.RUNNING)
    with pytest.raises(NotWanted):
        await ends.begin_attempt(begun, b"a key")
    assert await status_of(begun) == "failed"
    assert (await place.evacuate(made)).status is EvacuationStatus.FAILED, "there is no other backup to take"
    data_of(await place.caller.delete(f"/backups/{newest['uuid']}"))
    moved = await place.evacuated(made, EvacuationStatus.MOVED)
    assert str(moved.backup) == older["uuid"]
    after = await full(place.caller, made["uuid"])
    assert (after["status"], await visits(after)) == ("active", 3)
    waited = await ended(place.caller, asked["operation"]["uuid"])
    assert waited["status"] == "succeeded"
    assert data_of(await place.caller.get(f"/backups/{asked['data']['uuid']}"))["rows"] == 3


@ON_POSTGRES
async def test_a_backup_that_waits_for_the_host_ends_with_it(place: Place) -> None:
    made = await place.filled()
    await backed_up(place.caller, made)
    os.kill(place.server.pid, signal.SIGSTOP)
    try:
        asked = body_of(await place.caller.post(f"/databases/{made['uuid']}/backups", {}), 202)
        backup = UUID(asked["data"]["uuid"])
        await until(lambda: _is_tried(backup))
        assert (await place.evacuate(made)).status is EvacuationStatus.MOVING
        assert await status_of(backup) == "failed"
        operation = data_of(await place.caller.get(f"/operations/{asked['operation']['uuid']}"))
        assert (operation["status"], operation["reason"]["code"]) == ("failed", "host_lost")
        await until(lambda: place.is_closed(backup_workflow_id(backup)))
        await place.evacuated(made, EvacuationStatus.MOVED)
    finally:
        os.kill(place.server.pid, signal.SIGCONT)
    assert await status_of(backup) == "failed"
    events = await fetch("SELECT 1 FROM events WHERE type = 'backup.failed' AND team_id = $1", place.caller.team_id)
    assert len(events) == 1
    assert await visits(await full(place.caller, made["uuid"])) == 3


@ON_BOTH
async def test_an_application_that_was_running_ends_with_the_host(place: Place) -> None:
    """Its reference is of a transaction that the other host has committed, and its journal says that all is done."""
    made, elsewhere = await place.filled(), await filled(place.caller, place.engine)
    await backed_up(place.caller, made)
    async with place.service.frozen("worker"):
        running, waiting = [await ask(place.caller, made, TWO_TABLES, wait=False) for _ in range(2)]
        await fetch(
            "UPDATE blueprint_applications SET status = 'running', started_at = now(), attempt = 1,"
            " session_reference = $2, scratch_name = 'a_copy' WHERE id = $1",
            running["id"],
            await _committed_on(elsewhere),
        )
        await fetch(
            "INSERT INTO blueprint_statements (application_id, index, line, kind, sql, status)"
            " SELECT $1, n, n, 'CREATE TABLE', '', 'succeeded' FROM generate_series(1, 2) n",
            running["id"],
        )
        assert (await place.evacuate(made)).status is EvacuationStatus.MOVING
        await _have_ended_with_the_host(place, running, waiting)
        kept = await fetch(
            "SELECT 1 FROM blueprint_applications WHERE database_id = $1"
            " AND (session_reference, scratch_name, values_sealed) IS DISTINCT FROM (NULL, NULL, NULL)",
            (await row_of(made)).id,
        )
        assert not kept
    await until(lambda: place.is_closed(apply_workflow_id(running["id"], dry_run=False)))
    await place.evacuated(made, EvacuationStatus.MOVED)
    await _have_ended_with_the_host(place, running, waiting)
    assert await tables(await full(place.caller, made["uuid"])) == ["visits"]


async def _committed_on(made: dict[str, Any]) -> str:
    """The id of a transaction of its server; on MySQL the name of a lock that nobody holds."""
    if made["db_type"] != Engine.POSTGRES:
        return "headwater-of-an-attempt"
    async with session(made) as tenant:
        return str(await tenant.fetchval("SELECT pg_current_xact_id()::text"))


async def _have_ended_with_the_host(place: Place, running: dict[str, Any], waiting: dict[str, Any]) -> None:
    found = [data_of(await place.caller.get(f"/blueprint_applications/{one['id']}")) for one in (running, waiting)]
    assert [one["status"] for one in found] == ["failed", "failed"]
    assert [entry["status"] for entry in found[0]["execution_log"]] == ["unknown", "unknown"]
    assert ["unknown" in one["error_message"] for one in found] == [True, False]
    operations = data_of(
        await place.caller.get(
            "/operations", params={"database_uuid": running["database_uuid"], "type": "apply_blueprint"}
        )
    )
    assert [(one["status"], one["reason"]["code"]) for one in operations] == [("failed", "host_lost")] * 2


async def _is_tried(backup: UUID) -> bool:
    return bool(await fetch("SELECT 1 FROM backups WHERE uuid = $1 AND attempts > 0", backup))


@ON_POSTGRES
async def test_a_deletion_waits_for_no_backup_of_what_is_not_whole(place: Place) -> None:
    made = await place.filled()
    older, _ = await place.given_up(made)
    database = UUID(made["uuid"])
    asked = body_of(await place.caller.post(f"/databases/{database}/backups", {}), 202)
    data_of(await place.caller.delete(f"/databases/{database}"))
    # What nobody wants any more ends, though none is taken.
    await until(lambda: _has_status(asked["data"]["uuid"], "cancelled"))
    steps = EngineActivitiesOnHosts(
        DEFAULT_PLANS,
        place.service.box,
        place.adapters,
        HostSlots(),
        RunningProvisionings(),
        FinalBackups(TERMS),
    )
    await steps.revoke_access(database)
    data_of(await place.caller.post(f"/databases/{database}/undeletions", None))
    await place.is_shut(made)
    data_of(await place.caller.delete(f"/databases/{database}"))
    await fetch("UPDATE databases SET destroy_at = now() WHERE uuid = $1", database)
    await steps.destroy_database(database)
    assert BackupKind.FINAL.value not in await kinds_of(made)
    again = await place.caller.created("was", source={"backup_uuid": older["uuid"]})
    assert await visits(again) == 3


async def _has_status(backup: str, status: str) -> bool:
    return await status_of(UUID(backup)) == status


@ON_BOTH
async def test_a_restore_in_place_makes_it_whole_or_leaves_it_shut(place: Place) -> None:
    made = await place.filled()
    older, newest = await place.given_up(made)
    failed = await place.restored(made, newest)
    assert (failed["status"], failed["reason"]["code"]) == ("failed", "backup_damaged")
    await place.is_shut(made)
    assert (await place.restored(made, older))["status"] == "succeeded"
    assert BackupKind.BEFORE_RESTORE.value not in await kinds_of(made), "what there was is not whole"
    after = await full(place.caller, made["uuid"])
    assert (after["status"], await visits(after)) == ("active", 3)
    async with session(after) as tenant:
        await tenant.execute("INSERT INTO visits VALUES (100, 'later')")
    await backed_up(place.caller, made)
    assert (await place.evacuate(made)).status is EvacuationStatus.MOVED, "nothing is to be tried again"
    assert await visits(after) == 4


@ON_POSTGRES
async def test_after_a_restore_in_place_from_what_was_restored(place: Place) -> None:
    made = await place.filled()
    wanted = await backed_up(place.caller, made)
    async with session(made) as tenant:
        await tenant.execute("INSERT INTO visits VALUES (100, 'by mistake')")
    assert (await place.restored(made, wanted))["status"] == "succeeded"
    data_of(await place.caller.patch(f"/databases/{made['uuid']}/backup_policy", {"keep_last": 1}))
    await _keeps_what_was_restored(place, made, wanted)
    moved = await place.evacuated(made, EvacuationStatus.MOVED)
    assert str(moved.backup) == wanted["uuid"]
    after = await full(place.caller, made["uuid"])
    assert await visits(after) == 3
    async with session(after) as tenant:
        await tenant.execute("INSERT INTO visits VALUES (101, 'later')")
    await backed_up(place.caller, made)
    await fetch("UPDATE backups SET expires_at = now() WHERE uuid = $1", UUID(wanted["uuid"]))
    await expire(TERMS, UUID(made["uuid"]))
    assert await status_of(UUID(wanted["uuid"])) == "expired", "another one was taken since"


async def _keeps_what_was_restored(place: Place, made: dict[str, Any], wanted: dict[str, Any]) -> None:
    """With room for one, and when the time of both is over."""
    before, backup = await _before_of(made), UUID(wanted["uuid"])
    assert before is not None
    kinds = "UPDATE backups SET kind = 'scheduled', stored_bytes = $2 WHERE uuid = any($1::uuid[])"
    try:
        async with transaction():
            await fetch(kinds, [before, backup], 2**50)
            assert not await make_room(TERMS.plans, place.caller.team_id)
            assert [await status_of(one) for one in (before, backup)] == ["expired", "completed"]
            raise _Undone
    except _Undone:
        pass
    async with transaction():
        await fetch("UPDATE backups SET expires_at = now() - $2::interval WHERE uuid = $1", backup, timedelta(days=1))
        assert await expire(TERMS, UUID(made["uuid"])) == 0
        assert await status_of(backup) == "completed"


class _Undone(Exception):
    """Nothing of the transaction is to stay."""


async def _before_of(made: dict[str, Any]) -> UUID | None:
    [row] = await fetch("SELECT before_uuid FROM restorations WHERE database_id = $1", (await row_of(made)).id)
    before: UUID | None = row["before_uuid"]
    return before


@ON_BOTH
async def test_a_restore_in_place_that_the_loss_of_its_host_stopped_goes_on_elsewhere(place: Place) -> None:
    made = await place.filled()
    database, wanted = UUID(made["uuid"]), await backed_up(place.caller, made)
    async with session(made) as tenant:
        await tenant.execute("INSERT INTO visits VALUES (100, 'by mistake')")
    there = await row_of(made)
    # One at a time is taken of a database: the restore waits with its own until the lock is held.
    other = await add_backup(there, kind=BackupKind.MANUAL, status=BackupStatus.RUNNING)
    answer = await place.caller.post(f"/databases/{database}/restorations", {"backup_uuid": wanted["uuid"]})
    operation = body_of(answer, 202)["operation"]["uuid"]
    await until(lambda: _before_of(made))
    async with database_lock(database):
        await fetch("UPDATE backups SET status = 'cancelled' WHERE uuid = $1", other)
        # Its exchange can't go on from here, as when the host doesn't answer.
        await until(lambda: _is_exchanging(made))
        error_of(await place.caller.delete(f"/databases/{database}"), 409, "restoration_in_progress")
        assert (await place.evacuate(made)).status is EvacuationStatus.MOVING
        seen = data_of(await place.caller.get(f"/operations/{operation}"))
        assert (seen["status"], seen["reason"]["code"]) == ("failed", "host_lost")
        [restoration] = await fetch(
            "SELECT uuid, outcome FROM restorations WHERE database_id = $1 AND kind = 'in_place'", there.id
        )
        assert restoration["outcome"] == "failed"
    moved = await place.evacuated(made, EvacuationStatus.MOVED)
    assert str(moved.backup) == wanted["uuid"]
    after = await full(place.caller, made["uuid"])
    assert (after["status"], after["port"] == place.server.port, await visits(after)) == ("active", False, 3)
    await until(lambda: place.is_closed(restore_workflow_id(restoration["uuid"])))
    await _is_untouched(place, there)


async def _is_exchanging(made: dict[str, Any]) -> bool:
    return bool(
        await fetch(
            "SELECT 1 FROM restorations WHERE database_id = $1 AND kind = 'in_place' AND exchanging_at IS NOT NULL",
            (await row_of(made)).id,
        )
    )


async def _is_untouched(place: Place, there: DatabaseRecord) -> None:
    """The lost host, which is there again, has what it had."""
    adapter = await place.adapters.of_host(place.lost)

    async def contents() -> list[Content] | None:
        # Access to what was left behind is being ended there, and with it sessions.
        with suppress(HostUnavailable):
            return await adapter.contents(tenant_of(there, place.service.box))
        return None

    held = await until(contents)
    assert held is not None
    assert [one.rows for one in held if one.kind is ContentKind.TABLE] == [4], held


@ON_POSTGRES
async def test_a_move_to_a_host_that_is_lost_too_goes_on_elsewhere(
    place: Place, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Not on the first one, though that is back: what lies there may be newer."""
    made = await place.filled()
    wanted = await backed_up(place.caller, made)
    async with another_server(place.engine, tmp_path_factory.mktemp("next")) as server:
        await add_server(place.service, place.engine, server)
        await drain_host(place.other)
        try:
            async with database_lock(UUID(made["uuid"])):
                assert (await place.evacuate(made)).status is EvacuationStatus.MOVING
                host = (await row_of(made)).host_id
                assert host not in (place.lost, place.other)
                await undrain_host(place.lost)
                [found] = [one for one in await evacuate(host) if str(one.database) == made["uuid"]]
                assert found.status is EvacuationStatus.NO_ROOM
                await undrain_host(place.other)
                [found] = [one for one in await evacuate(host) if str(one.database) == made["uuid"]]
            assert (found.status, str(found.backup)) == (EvacuationStatus.MOVING, wanted["uuid"])
        finally:
            await undrain_host(place.other)
        await until(lambda: _is_active(place, made))
        assert (await row_of(made)).host_id == place.other
        assert (await place.evacuate(made)).status is EvacuationStatus.MOVED
        assert await visits(await full(place.caller, made["uuid"])) == 3
        assert await records.give_up_left_behind(place.lost) == 1


async def _is_active(place: Place, made: dict[str, Any]) -> bool:
    return bool((await full(place.caller, made["uuid"]))["status"] == "active")
