"""What goes wrong while data is brought is waited for, or reported; it never costs data that was there."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from app.backups import retention
from app.backups.admission import BackupLimits
from app.backups.policies import BackupTerms
from app.contracts.backups import BackupKind, BackupStatus
from app.contracts.base import Engine
from app.operations.reasons import ReasonCode
from app.quotas.plans import DEFAULT_PLANS
from app.store.locks import transfers_lock
from app.store.session import fetch
from tests.backups.support import add_backup, database_row, status_of
from tests.e2e.backup_storm import store_lost
from tests.restores.conftest import ENGINES
from tests.restores.support import backed_up, filled, full, session, visits, waits_for
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.waited import WAIT, ended, waited
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("adapters")


@pytest.mark.parametrize("engine", ENGINES[1:])
async def test_what_there_was_is_loaded_back(service: RunningService, caller: Caller, engine: Engine) -> None:
    """Where databases can't be exchanged, and not before its own backup is whole."""
    made = await filled(caller, engine)
    backup = await backed_up(caller, made)
    async with session(made) as tenant:
        await tenant.execute("INSERT INTO visits VALUES (100, 'later')")
    async with _held_before_the_exchange(caller, made, backup) as (operation, before):
        for kept in (backup["uuid"], str(before)):
            error_of(await caller.delete(f"/backups/{kept}"), 409, "backup_being_restored")
        for damaged in (backup["uuid"], str(before)):
            _flip(service, damaged)
    await until(lambda: waits_for(caller, operation, "data_not_back"))
    assert (await full(caller, made["uuid"]))["status"] == "paused"
    _flip(service, str(before))
    seen = await ended(caller, operation)
    assert (seen["status"], seen["reason"]["code"]) == ("failed", "backup_damaged")
    await until(lambda: _is_active(caller, made))
    assert await visits(made) == 4
    data_of(await caller.delete(f"/backups/{before}"))


@pytest.mark.parametrize("damaged", [False, True], ids=["whole", "damaged"])
@pytest.mark.parametrize("engine", ENGINES[1:])
async def test_where_its_tenant_has_dropped_the_database_nothing_is_kept_first(
    service: RunningService, caller: Caller, engine: Engine, damaged: bool
) -> None:
    """Nor loaded back."""
    made = await filled(caller, engine)
    backup = await backed_up(caller, made)
    async with session(made) as tenant:
        await tenant.execute(f"DROP DATABASE `{made['db_name']}`")
    answer = await caller.post(f"/databases/{made['uuid']}/backups", {}, params=WAIT)
    refused = (await waited(caller, answer, "/backups"))["data"]
    assert (refused["status"], "dropped it" in refused["error"]) == ("failed", True)
    async with _held_before_the_exchange(caller, made, backup, "cancelled") as (operation, before):
        seen = data_of(await caller.get(f"/backups/{before}"))
        assert (seen["kind"], seen["error"]) == ("before_restore", ReasonCode.DATABASE_DROPPED.message)
        if damaged:
            _flip(service, backup["uuid"])
    assert (await ended(caller, operation))["status"] == ("failed" if damaged else "succeeded")
    await until(lambda: _is_active(caller, made))
    async with session(made) as tenant:
        await tenant.execute("SHOW TABLES")
        assert len(await tenant.fetchall()) == (0 if damaged else 1)
    if not damaged:
        assert await visits(made) == 3


@pytest.mark.parametrize("engine", [Engine.POSTGRES])
async def test_a_store_that_is_away_is_waited_for(service: RunningService, caller: Caller, engine: Engine) -> None:
    made = await filled(caller, engine)
    source = {"backup_uuid": (await backed_up(caller, made))["uuid"]}
    with store_lost(Path(service.folder) / "backups"):
        created = body_of(await caller.create("again", source=source), 202)
        restored = body_of(await caller.post(f"/databases/{made['uuid']}/restorations", source), 202)
        for one in (created, restored):
            await until(lambda one=one: waits_for(caller, one["operation"]["uuid"], "backup_store_unavailable"))  # type: ignore[misc]
        async with session(made) as tenant:
            await tenant.execute("INSERT INTO visits VALUES (100, 'later')")
    for one in (created, restored):
        assert (await ended(caller, one["operation"]["uuid"]))["status"] == "succeeded"
    assert [await visits(one) for one in (created["data"], made)] == [3, 3]


async def test_a_backup_that_expires_while_one_of_two_restores_is_cancelled(
    service: RunningService, caller: Caller
) -> None:
    made = await filled(caller, Engine.POSTGRES)
    backup = await backed_up(caller, made)
    await backed_up(caller, made)
    data_of(await caller.patch(f"/databases/{made['uuid']}/backup_policy", {"keep_last": 1}))
    terms = BackupTerms(plans=DEFAULT_PLANS, hour=timedelta(hours=1), limits=BackupLimits())
    # The worker ends what has expired by itself, too.
    await service.kill("worker")
    await fetch("UPDATE backups SET expires_at = now() WHERE uuid = $1", UUID(backup["uuid"]))
    asked = [body_of(await caller.create("again", source={"backup_uuid": backup["uuid"]}), 202) for _ in range(2)]
    async with AsyncExitStack() as held:
        for one in asked:
            await held.enter_async_context(transfers_lock(UUID(one["data"]["uuid"])))
        await service.start("worker")
        cancelled, other = asked
        data_of(await caller.post(f"/operations/{cancelled['operation']['uuid']}/cancellations", None))
        assert await retention.expire(terms, UUID(made["uuid"])) == 0
        error_of(await caller.delete(f"/backups/{backup['uuid']}"), 409, "backup_being_restored")
    assert (await ended(caller, cancelled["operation"]["uuid"]))["status"] == "cancelled"
    assert (await ended(caller, other["operation"]["uuid"]))["status"] == "succeeded"
    assert await visits(other["data"]) == 3
    await retention.expire(terms, UUID(made["uuid"]))
    assert await status_of(UUID(backup["uuid"])) == "expired"


async def test_a_host_without_storage_takes_no_copy(service: RunningService, caller: Caller) -> None:
    """Where its operator said how much it has."""
    made = await filled(caller, Engine.POSTGRES)
    # Or the service may begin a restore test by itself, before the host has no room.
    data_of(await caller.patch(f"/databases/{made['uuid']}/backup_policy", {"enabled": False}))
    backup = await backed_up(caller, made)
    source, uuid = {"backup_uuid": backup["uuid"]}, UUID(made["uuid"])
    await fetch("UPDATE backups SET size_bytes = 2^30 WHERE uuid = $1", UUID(backup["uuid"]))
    await fetch(
        "INSERT INTO database_usage (database_id, storage_bytes) SELECT id, 9 FROM databases WHERE uuid = $1"
        " ON CONFLICT (database_id) DO UPDATE SET storage_bytes = greatest(9, database_usage.storage_bytes)",
        uuid,
    )
    bounded = "UPDATE engine_hosts SET storage_gb = $2 WHERE id = (SELECT host_id FROM databases WHERE uuid = $1)"
    try:
        await fetch(bounded, uuid, 1)
        refused = [
            await caller.create("again", source=source),
            await caller.post(f"/databases/{uuid}/restorations", source),
        ]
        for answer, field in zip(refused, ("source", "backup_uuid"), strict=True):
            error = error_of(answer, 422, "capacity_exhausted")
            assert error["details"] == {"field": field}
            assert "storage" in error["message"]
        data_of(await caller.post(f"/backups/{backup['uuid']}/restore_tests", None), 202)
        await until(lambda: _has_no_room(caller, backup))
        await fetch(bounded, uuid, 3)
        answer = await caller.post(f"/databases/{uuid}/restorations", source, params=WAIT)
        restored = await waited(caller, answer, "/databases", status=200)
        assert (restored["operation"]["status"], restored["data"]["status"]) == ("succeeded", "active")
    finally:
        await fetch(bounded, uuid, None)


async def _has_no_room(caller: Caller, backup: dict[str, Any]) -> bool:
    proof = data_of(await caller.get(f"/backups/{backup['uuid']}"))["proof"]
    return proof["status"] == "running" and "No host that takes it has room" in (proof["error"] or "")


@asynccontextmanager
async def _held_before_the_exchange(
    caller: Caller, made: dict[str, Any], backup: dict[str, Any], status: str = "completed"
) -> AsyncIterator[tuple[str, UUID]]:
    """The operation of a restore in place. What there was is in the other backup, which has that status, and nothing of
    it is touched before the end of the block."""
    database = UUID(made["uuid"])
    # One at a time is taken of a database: the restore waits with its own until the lock is held.
    other = await add_backup(await database_row(made["uuid"]), kind=BackupKind.MANUAL, status=BackupStatus.RUNNING)
    answer = await caller.post(f"/databases/{database}/restorations", {"backup_uuid": backup["uuid"]})
    operation = body_of(answer, 202)["operation"]["uuid"]

    async def noted() -> UUID | None:
        rows = await fetch(
            "SELECT r.before_uuid FROM restorations r JOIN databases d ON d.id = r.database_id WHERE d.uuid = $1",
            database,
        )
        return rows[0]["before_uuid"] if rows else None

    async def taken() -> bool:
        [row] = await fetch("SELECT status FROM backups WHERE uuid = $1", before)
        return bool(row["status"] == status)

    before = await until(noted)
    assert before is not None, "it was waited for"
    async with transfers_lock(database):
        await fetch("UPDATE backups SET status = 'cancelled' WHERE uuid = $1", other)
        await until(taken)
        yield operation, before


def _flip(service: RunningService, backup: str) -> None:
    """A byte in the middle of the dump; another call flips it back."""
    (part,) = (Path(service.folder) / "backups" / backup).rglob("*.zst.age")
    held = bytearray(part.read_bytes())
    held[len(held) // 2] ^= 1
    part.write_bytes(held)


async def _is_active(caller: Caller, made: dict[str, Any]) -> bool:
    return bool((await full(caller, made["uuid"]))["status"] == "active")
