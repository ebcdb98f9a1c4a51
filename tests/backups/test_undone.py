"""Backups that are to be taken before a change end with it: by rows alone."""

import asyncio
from contextvars import Context
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from app.backups import ends
from app.backups.admission import BackupLimits, admit_waiting
from app.backups.final import FinalBackupFailed, FinalBackupPending, FinalBackups
from app.backups.requests import request_backup
from app.backups.restores import in_place, records
from app.contracts.backups import BackupKind, BackupStatus
from app.contracts.queues import backup_workflow_id, restarted_workflow_id, restore_workflow_id
from app.contracts.restores import RestorationOutcome
from app.contracts.retries import CANCEL
from app.operations.kinds import OperationStatus, OperationType
from app.operations.records import rename_workflow
from app.provisioning import service
from app.provisioning.undeletion import undelete
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch, transaction
from tests.backups.support import TERMS, add_backup, database_row, status_of
from tests.operations.support import active, code_of, latest, row
from tests.support.answers import body_of, data_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi

_GRACE = timedelta(hours=1)
_DUMPED = '{"flavour": "postgres", "server_version": "18.6", "tool": "pg_dump 18.6", "layout": ""}'


@pytest.mark.parametrize("admitted", [False, True])
async def test_a_final_backup_ends_with_the_deletion(lone: LoneApi, admitted: bool) -> None:
    _, database = await active(lone)
    finals = FinalBackups(TERMS)
    for _ in range(3):
        await _delete(database)
        await _request(finals, database)
        if admitted:
            assert await admit_waiting(BackupLimits()) == 1
        await undelete(DEFAULT_PLANS, database)
    rows = await fetch("SELECT uuid, status FROM backups WHERE database_uuid = $1 ORDER BY id", database)
    assert [row["status"] for row in rows] == ["cancelled"] * 3
    operation = await latest(database, OperationType.BACKUP)
    assert (operation.status, code_of(operation)) == (OperationStatus.CANCELLED, "undeleted")
    signalled = [backup_workflow_id(row["uuid"]) for row in rows] if admitted else []
    assert await _signalled() == signalled


async def test_one_that_is_completed_stays(lone: LoneApi) -> None:
    _, database = await active(lone)
    await _delete(database)
    backup = await add_backup(await database_row(str(database)), kind=BackupKind.FINAL)
    await undelete(DEFAULT_PLANS, database)
    assert await status_of(backup) == "completed"


async def test_one_that_a_client_asked_for_goes_on(lone: LoneApi) -> None:
    """It was under way when the database was deleted, and nobody has looked since."""
    _, database = await active(lone)
    backup = await add_backup(await database_row(str(database)), kind=BackupKind.MANUAL, status=BackupStatus.RUNNING)
    await _delete(database)
    await undelete(DEFAULT_PLANS, database)
    assert await status_of(backup) == "running"


async def test_what_ended_with_an_earlier_deletion_waives_nothing(lone: LoneApi) -> None:
    """The transaction of the next deletion began before that backup was asked for, and waited."""
    _, database = await active(lone)
    finals = FinalBackups(TERMS)

    async def earlier() -> None:
        await _delete(database)
        await _request(finals, database)
        await undelete(DEFAULT_PLANS, database)

    async with transaction():
        await fetch("SELECT now()")
        # In no transaction of this one's.
        await asyncio.create_task(earlier(), context=Context())
        await service.delete_any(DEFAULT_PLANS, database, _GRACE)
    await _revoked(database)
    with pytest.raises(FinalBackupPending):
        await finals.expect_made(database)


async def test_one_that_fails_again_and_again_is_asked_for_less_and_less_often(lone: LoneApi) -> None:
    """As of a database with a view of a table that is gone."""
    _, database = await active(lone)
    finals = FinalBackups(TERMS)
    await _delete(database)
    await _request(finals, database)
    pauses = [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]
    for shorter, pause in zip([0, *pauses[:7], 1920], pauses, strict=True):
        [failing] = await fetch("SELECT uuid FROM backups WHERE status = 'pending'")
        await ends.fail(failing["uuid"], "a view is of a table that is gone")
        for seconds, asked in ((shorter, False), (pause, True)):
            await fetch(
                "UPDATE backups SET changed_at = now() - make_interval(secs => $2) WHERE uuid = $1",
                failing["uuid"],
                seconds,
            )
            with pytest.raises(FinalBackupFailed):
                await finals.expect_made(database)
            assert bool(await fetch("SELECT 1 FROM backups WHERE status = 'pending'")) is asked
    with pytest.raises(FinalBackupPending, match="no final backup yet"):
        await finals.expect_made(database)


@pytest.mark.parametrize("way", ["cancelled", "deleted"])
async def test_what_there_is_is_backed_up_for_no_restore_that_has_ended(lone: LoneApi, way: str) -> None:
    caller, database = await active(lone)
    source = await add_backup(await database_row(str(database)), kind=BackupKind.MANUAL, format=_DUMPED, quotas="{}")
    for _ in range(3):
        operation = await _closed(caller, database, source)
        assert await admit_waiting(BackupLimits()) == 1
        if way == "cancelled":
            data_of(await caller.post(f"/operations/{operation}/cancellations", None))
        else:
            await _delete(database)
            await undelete(DEFAULT_PLANS, database)
        await fetch("UPDATE databases SET status = 'active', access_applied = access_revision")
    rows = await fetch("SELECT uuid, status FROM backups WHERE kind = 'before_restore' ORDER BY id")
    assert [row["status"] for row in rows] == ["cancelled"] * 3
    assert [one for one in await _signalled() if "backup" in one] == [backup_workflow_id(row["uuid"]) for row in rows]


@pytest.mark.parametrize(
    ("kind", "silent_seconds", "goes"),
    [
        (BackupKind.SCHEDULED, None, True),
        (BackupKind.SCHEDULED, 61, True),
        (BackupKind.SCHEDULED, 5, False),
        (BackupKind.MANUAL, None, False),
    ],
    ids=["no worker has it", "its worker died", "it is being taken", "a client asked for it"],
)
async def test_a_restore_waits_for_no_scheduled_backup_without_a_worker(
    lone: LoneApi, kind: BackupKind, silent_seconds: int | None, goes: bool
) -> None:
    caller, database = await active(lone)
    source = await add_backup(await database_row(str(database)), kind=BackupKind.MANUAL, format=_DUMPED, quotas="{}")
    async with transaction():
        waiting = await request_backup(await row(database), kind)
    assert await admit_waiting(BackupLimits()) == 1
    if silent_seconds is not None:
        await fetch(
            "UPDATE backups SET status = 'running', attempts = 1, beat_at = now() - make_interval(secs => $2)"
            " WHERE uuid = $1",
            waiting.record.uuid,
            silent_seconds,
        )
    await _closed(caller, database, source)
    assert (await status_of(waiting.record.uuid) == "cancelled") is goes
    assert await admit_waiting(BackupLimits()) == int(goes)
    signalled = [one for one in await _signalled() if "backup" in one]
    assert signalled == ([backup_workflow_id(waiting.record.uuid)] if goes else [])
    ended = await fetch("SELECT type FROM operations WHERE reason->>'code' = 'superseded'")
    assert [one["type"] for one in ended] == (["backup"] if goes else [])


async def test_a_restore_does_not_wait_for_a_scheduled_backup_that_loses_its_worker(lone: LoneApi) -> None:
    caller, database = await active(lone)
    source = await add_backup(await database_row(str(database)), kind=BackupKind.MANUAL, format=_DUMPED, quotas="{}")
    async with transaction():
        taken = (await request_backup(await row(database), BackupKind.SCHEDULED)).record.uuid
    assert await admit_waiting(BackupLimits()) == 1
    await fetch("UPDATE backups SET status = 'running', attempts = 1, beat_at = now() WHERE uuid = $1", taken)
    await _closed(caller, database, source)
    assert await status_of(taken) == "running"
    await fetch("UPDATE backups SET beat_at = NULL WHERE uuid = $1", taken)
    [restoration] = await fetch("SELECT uuid FROM restorations")
    assert not await in_place.back_up_first(DEFAULT_PLANS, restoration["uuid"])
    assert await status_of(taken) == "cancelled"
    assert await admit_waiting(BackupLimits()) == 1


async def test_backups_are_taken_until_a_restore_has_loaded_its_copy(lone: LoneApi) -> None:
    """A load may wait for days, and the tenant works meanwhile."""
    caller, database = await active(lone)
    record = await row(database)
    source = await add_backup(record, kind=BackupKind.MANUAL, format=_DUMPED, quotas="{}")
    body_of(await caller.post(f"/databases/{database}/restorations", {"backup_uuid": str(source)}), 202)
    [restoration] = await fetch("SELECT uuid FROM restorations")
    loading = await add_backup(record, status=BackupStatus.PENDING)
    assert await admit_waiting(BackupLimits()) == 1
    await fetch("UPDATE backups SET status = 'completed' WHERE uuid = $1", loading)
    await records.note_whole(restoration["uuid"], record.host_id, "copy")
    await add_backup(record, status=BackupStatus.PENDING)
    assert await admit_waiting(BackupLimits()) == 0
    before = await add_backup(record, kind=BackupKind.BEFORE_RESTORE, status=BackupStatus.PENDING)
    assert await admit_waiting(BackupLimits()) == 1
    await fetch("UPDATE backups SET status = 'completed' WHERE uuid = $1", before)
    assert await admit_waiting(BackupLimits()) == 0
    async with transaction():
        await records.end(restoration["uuid"], RestorationOutcome.COMPLETED)
    assert await admit_waiting(BackupLimits()) == 1


@pytest.mark.parametrize("way", ["cancelled", "deleted", "host lost"])
async def test_the_workflow_that_was_begun_anew_learns_of_the_end(lone: LoneApi, way: str) -> None:
    caller, database = await active(lone)
    source = await add_backup(await database_row(str(database)), kind=BackupKind.MANUAL, format=_DUMPED, quotas="{}")
    body = body_of(await caller.post(f"/databases/{database}/restorations", {"backup_uuid": str(source)}), 202)
    [restoration] = await fetch("SELECT uuid FROM restorations")
    began = restore_workflow_id(restoration["uuid"])
    again = restarted_workflow_id(began, uuid4())
    await rename_workflow(began, again)
    if way == "cancelled":
        data_of(await caller.post(f"/operations/{body['operation']['uuid']}/cancellations", None))
    elif way == "deleted":
        await _delete(database)
    else:
        found = await records.find(restoration["uuid"])
        assert found is not None
        async with transaction():
            await in_place.end_on_lost_host(await row(database), found)
    assert await _signalled() == [again]
    assert (await latest(database, OperationType.RESTORE)).ended


async def _closed(caller: Caller, database: UUID, source: UUID) -> str:
    """A restore in place that waits for the backup of what there is. Returns its operation."""
    body = body_of(await caller.post(f"/databases/{database}/restorations", {"backup_uuid": str(source)}), 202)
    [row] = await fetch("SELECT uuid FROM restorations WHERE ended_at IS NULL")
    await in_place.begin_closing(DEFAULT_PLANS, row["uuid"])
    assert not await in_place.back_up_first(DEFAULT_PLANS, row["uuid"])
    operation: str = body["operation"]["uuid"]
    return operation


async def _delete(database: UUID) -> None:
    async with transaction():
        await service.delete_any(DEFAULT_PLANS, database, _GRACE)


async def _revoked(database: UUID) -> None:
    await fetch("UPDATE databases SET remote_since = now(), revoked_at = now() WHERE uuid = $1", database)


async def _request(finals: FinalBackups, database: UUID) -> None:
    await _revoked(database)
    await finals.request(database)
    assert await fetch("SELECT 1 FROM backups WHERE kind = 'final' AND status = 'pending'")


async def _signalled() -> list[str]:
    rows = await fetch("SELECT workflow_id FROM workflow_starts WHERE signal = $1 ORDER BY id", CANCEL)
    return [row["workflow_id"] for row in rows]
