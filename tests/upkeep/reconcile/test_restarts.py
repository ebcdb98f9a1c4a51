"""What nothing works on any more is begun anew; what something works on is left to it."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
import pytest_asyncio
from temporalio.client import Client

from app.backups.requests import PRIORITIES
from app.contracts.backups import BackupKind, BackupStatus, ProveBackupInput
from app.contracts.queues import provision_workflow_id
from app.core.temporal import connect
from app.outbox.provisionings import claim_pending
from app.outbox.starting import start_all
from app.store.session import fetch
from app.upkeep.reconcile.restarts import restart_lost_workflows
from tests.backups.support import add_backup, database_row
from tests.support.client import Caller
from tests.support.service import REGION, RunningService
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("records")
AGO = "now() - interval '10 minutes'"


@pytest_asyncio.fixture
async def client(service: RunningService) -> Client:
    return await connect(service.temporal.address, service.namespace)


async def _row(database: str) -> dict[str, object]:
    rows = await fetch("SELECT * FROM databases WHERE uuid = $1", UUID(database))
    return dict(rows[0])


async def _deeds(client: Client, database: str, patience: timedelta) -> list[str]:
    return [repair.split()[1] for repair in await restart_lost_workflows(client, patience) if database in repair]


async def test_a_provisioning_whose_workflow_was_terminated_goes_on(
    service: RunningService, caller: Caller, client: Client
) -> None:
    async with service.frozen("worker"):
        answer = await caller.create("left-alone")
        uuid = answer.json()["data"]["uuid"]
        handle = client.get_workflow_handle(provision_workflow_id(UUID(uuid)))
        assert await start_all(client, await claim_pending(REGION, 10)) == []
        await fetch(f"UPDATE databases SET created_at = {AGO} WHERE uuid = $1", UUID(uuid))

        async def listed() -> bool:
            return bool([one async for one in client.list_workflows(f"HeadwaterDatabase = '{uuid}'")])

        await until(listed)
        assert await _deeds(client, uuid, timedelta(minutes=5)) == [], "its workflow is open"
        await handle.terminate()

        async def closed() -> bool:
            query = f"HeadwaterDatabase = '{uuid}' AND ExecutionStatus = 'Running'"
            return not [one async for one in client.list_workflows(query)]

        await until(closed)
        assert await _deeds(client, uuid, timedelta(minutes=15)) == [], "it has not been so for long"
        assert await _deeds(client, uuid, timedelta(minutes=5)) == ["ProvisionDatabase"]
        assert await _deeds(client, uuid, timedelta(minutes=5)) == [], "its start is pending"
        # The audit log tells who stopped it, and what the service did about it.
        told = await fetch(
            "SELECT actor_kind, action, changes ->> 'workflow' AS workflow FROM audit_events"
            " WHERE actor_kind <> 'key' AND team_id = $1 ORDER BY id",
            caller.team_id,
        )
        assert [(one["actor_kind"], one["action"]) for one in told] == [
            ("operator", "workflow.stop"),
            ("service", "workflow.restart"),
        ]
        assert provision_workflow_id(UUID(uuid)) in told[0]["workflow"]

    async def active() -> bool:
        return (await _row(uuid))["status"] == "active"

    await until(active)


async def test_deletions_and_changes_go_on(caller: Caller, client: Client) -> None:
    kept, gone, paused = [await caller.created() for _ in range(3)]
    await fetch(
        "UPDATE databases SET limits_revision = limits_revision + 1, connections = 3,"
        f" updated_at = {AGO} WHERE uuid = $1",
        UUID(kept["uuid"]),
    )
    await fetch(
        f"UPDATE databases SET status = 'deleted', deleted_at = {AGO}, destroy_at = {AGO} WHERE uuid = $1",
        UUID(gone["uuid"]),
    )
    await fetch(
        f"UPDATE databases SET status = 'paused', access_revision = access_revision + 1, access_changed_at = {AGO}"
        " WHERE uuid = $1",
        UUID(paused["uuid"]),
    )
    mine = (kept["uuid"], gone["uuid"], paused["uuid"])
    repairs = [
        repair.split()[1] for repair in await restart_lost_workflows(client) if any(uuid in repair for uuid in mine)
    ]
    assert repairs == ["ApplyLimits", "DeleteDatabase", "ApplyAccess"]

    async def done() -> bool:
        limited, deleted, resumed = [await _row(uuid) for uuid in mine]
        applied = limited["limits_applied"] == limited["limits_revision"]
        return applied and deleted["destroyed_at"] is not None and resumed["status"] == "active"

    await until(done)


@pytest.mark.parametrize("kind", [BackupKind.BEFORE_RESTORE, BackupKind.SCHEDULED])
async def test_a_backup_keeps_its_queue_and_its_priority(
    service: RunningService, caller: Caller, client: Client, kind: BackupKind
) -> None:
    """One that a restore waits for, with the database closed, waits behind no dump that gives way to clients."""
    uuid = (await caller.created())["uuid"]
    async with service.frozen("worker"):
        backup = await add_backup(
            await database_row(uuid), kind=kind, status=BackupStatus.RUNNING, priority=PRIORITIES[kind]
        )
        await fetch(f"UPDATE backups SET changed_at = {AGO} WHERE uuid = $1", backup)
        assert await _deeds(client, uuid, timedelta(minutes=5)) == ["BackupDatabase"]
        [start] = await fetch(
            "DELETE FROM workflow_starts WHERE workflow = 'BackupDatabase' AND input ->> 'database' = $1"
            " RETURNING coalesce((input ->> 'in_restore')::boolean, false) AS in_restore, priority",
            uuid,
        )
        await fetch("UPDATE backups SET status = 'cancelled' WHERE uuid = $1", backup)
    assert (start["in_restore"], start["priority"]) == (kind is BackupKind.BEFORE_RESTORE, PRIORITIES[kind])


async def test_a_restore_test_of_a_recovered_backup_goes_on(
    service: RunningService, caller: Caller, client: Client
) -> None:
    """Its database was lost with our own records."""
    lost = uuid4()
    record = await database_row((await caller.created())["uuid"])
    async with service.frozen("worker"):
        recovered: dict[str, Any] = {"database_id": None, "database_uuid": lost, "region": "test-elsewhere"}
        backup = await add_backup(record, proof_number=2, proof_status="running", **recovered)
        await fetch(f"UPDATE backups SET proof_changed_at = {AGO} WHERE uuid = $1", backup)
        assert await _deeds(client, str(lost), timedelta(minutes=5)) == ["ProveBackup"]
        assert await _deeds(client, str(lost), timedelta(minutes=5)) == [], "its start is pending"
        [start] = await fetch(
            "DELETE FROM workflow_starts WHERE workflow = 'ProveBackup' AND input ->> 'database' = $1"
            " RETURNING input::text AS input",
            str(lost),
        )
        await fetch("UPDATE backups SET status = 'deleted', proof_status = 'failed' WHERE uuid = $1", backup)
    test = msgspec.json.decode(start["input"], type=ProveBackupInput)
    assert (test.backup, test.number, test.database, test.engine) == (backup, 2, lost, record.engine)
    assert (test.region, test.team_id) == ("test-elsewhere", record.team_id)


async def test_what_is_in_order_is_left_alone(caller: Caller, client: Client) -> None:
    active, deleted = await caller.created(), await caller.created()
    await caller.delete(f"/databases/{deleted['uuid']}")
    for made in (active, deleted):
        await fetch(
            f"UPDATE databases SET created_at = {AGO}, updated_at = {AGO},"
            f" deleted_at = CASE WHEN status = 'deleted' THEN {AGO} END WHERE uuid = $1",
            UUID(made["uuid"]),
        )
        assert await _deeds(client, made["uuid"], timedelta(minutes=5)) == []
