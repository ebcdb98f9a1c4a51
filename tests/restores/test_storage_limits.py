"""What the service backs up by itself before it changes something stays within what a team's tier has it store: however
often a database is deleted and undeleted, or restored."""

from typing import Any
from uuid import UUID

import pytest

from activities.engine import EngineActivitiesOnHosts
from app.contracts.backups import FINAL_BACKUP_PENDING, BackupKind, BackupStatus
from app.contracts.base import Engine
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch
from tests.backups.support import add_backup, database_row
from tests.restores.support import backed_up, filled, refusal, visits
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.waited import WAIT, waited
from tests.support.waiting import until

_LIMIT = int(DEFAULT_PLANS.tiers["pro"].backup_storage_gb * 2**30)


async def test_a_deletion_that_is_undone_leaves_nothing_to_be_backed_up(
    caller: Caller, steps: EngineActivitiesOnHosts
) -> None:
    made = await filled(caller, Engine.POSTGRES)
    database = UUID(made["uuid"])
    # One at a time is taken of a database: others wait.
    other = await add_backup(await database_row(made["uuid"]), kind=BackupKind.MANUAL, status=BackupStatus.RUNNING)
    for round_ in range(3):
        deleted = body_of(await caller.delete(f"/databases/{database}"))
        await steps.revoke_access(database)
        assert await _finals(database, "pending", "running")
        if round_ % 2:
            path = f"/operations/{deleted['operation']['uuid']}/cancellations"
            data_of(await caller.post(path, None))
        else:
            data_of(await caller.post(f"/databases/{database}/undeletions", None))
        assert await _finals(database, "pending", "running") == []
        await until(lambda: _is_active(caller, database))
    assert len(await _finals(database, "cancelled")) == 3
    operations = data_of(await caller.get("/operations", params={"database_uuid": str(database), "type": "backup"}))
    assert {(one["status"], one["reason"]["code"]) for one in operations} == {("cancelled", "undeleted")}
    await fetch("UPDATE backups SET status = 'cancelled' WHERE uuid = $1", other)
    # What ended so waives nothing.
    data_of(await caller.delete(f"/databases/{database}"))
    assert await refusal(steps, database) == FINAL_BACKUP_PENDING
    [backup] = await until(lambda: _finals(database, "completed"))
    await _destroy(steps, database)
    again = await caller.created("was", source={"backup_uuid": str(backup)})
    assert await visits(again) == 3


async def test_of_a_team_at_its_limit_it_is_taken_when_the_grace_is_over(
    caller: Caller, steps: EngineActivitiesOnHosts
) -> None:
    made = await filled(caller, Engine.POSTGRES)
    database = UUID(made["uuid"])
    await add_backup(await database_row(made["uuid"]), kind=BackupKind.MANUAL, days_ago=9, stored_bytes=_LIMIT)
    for _ in range(2):
        data_of(await caller.delete(f"/databases/{database}"))
        await steps.revoke_access(database)
        assert await _finals(database) == []
        data_of(await caller.post(f"/databases/{database}/undeletions", None))
    data_of(await caller.delete(f"/databases/{database}"))
    await steps.revoke_access(database)
    assert await refusal(steps, database) == FINAL_BACKUP_PENDING
    [backup] = await until(lambda: _finals(database, "completed"))
    await _destroy(steps, database)
    again = await caller.created("was", source={"backup_uuid": str(backup)})
    assert await visits(again) == 3


async def test_of_completed_ones_the_older_go_where_a_team_has_no_room(
    caller: Caller, steps: EngineActivitiesOnHosts
) -> None:
    """The one that its database was undeleted with stays."""
    made = await filled(caller, Engine.POSTGRES)
    database = UUID(made["uuid"])
    completed: list[UUID] = []
    for number in (1, 2, 3):
        data_of(await caller.delete(f"/databases/{database}"))
        await steps.revoke_access(database)
        last = completed

        async def one_more(last: list[UUID] = last) -> list[UUID]:
            found = await _finals(database, "completed")
            return [one for one in found if one not in last]

        completed += await until(one_more)
        data_of(await caller.post(f"/databases/{database}/undeletions", None))
        if number == 2:
            await fetch("UPDATE backups SET stored_bytes = $2 WHERE uuid = $1", completed[0], _LIMIT)
    assert await _finals(database, "expired") == completed[:1]
    assert await _finals(database, "completed") == completed[1:]


@pytest.mark.usefixtures("adapters")
async def test_restores_in_place_one_after_the_other(service: RunningService, caller: Caller) -> None:
    made = await filled(caller, Engine.POSTGRES)
    database = UUID(made["uuid"])
    backup = await backed_up(caller, made)
    await add_backup(await database_row(made["uuid"]), kind=BackupKind.MANUAL, days_ago=9, stored_bytes=_LIMIT)
    for done in range(1, 5):
        await _restored(caller, made, backup)
        assert len(await _of_kind(database, BackupKind.BEFORE_RESTORE, "completed")) == min(done, 2)
    for gone in await _of_kind(database, BackupKind.BEFORE_RESTORE, "expired"):
        await until(lambda gone=gone: _is_gone(service, gone))  # type: ignore[misc]
    # What the policy promises stays, and the team decides.
    data_of(await caller.patch(f"/databases/{database}/backup_policy", {"keep_last": 1000}))
    refused = error_of(await _restore(caller, made, backup), 422, "team_limit_reached")
    assert refused["details"]["resource"] == "backup_storage_gb"
    older, newest = await _of_kind(database, BackupKind.BEFORE_RESTORE, "completed")
    data_of(await caller.delete(f"/backups/{older}"))
    await _restored(caller, made, backup)
    assert newest in await _of_kind(database, BackupKind.BEFORE_RESTORE, "completed")
    assert await visits(made) == 3


async def _restore(caller: Caller, made: dict[str, Any], backup: dict[str, Any]) -> Any:
    path = f"/databases/{made['uuid']}/restorations"
    return await caller.post(path, {"backup_uuid": backup["uuid"]}, params=WAIT)


async def _restored(caller: Caller, made: dict[str, Any], backup: dict[str, Any]) -> None:
    restored = await waited(caller, await _restore(caller, made, backup), "/databases", status=200)
    assert restored["operation"]["status"] == "succeeded"


async def _finals(database: UUID, *statuses: str) -> list[UUID]:
    return await _of_kind(database, BackupKind.FINAL, *statuses)


async def _of_kind(database: UUID, kind: BackupKind, *statuses: str) -> list[UUID]:
    """Oldest first; without a status those of all."""
    rows = await fetch(
        "SELECT uuid FROM backups WHERE database_uuid = $1 AND kind = $2"
        " AND (status = any($3::text[]) OR $3 = '{}') ORDER BY id",
        database,
        kind.value,
        list(statuses),
    )
    return [row["uuid"] for row in rows]


async def _destroy(steps: EngineActivitiesOnHosts, database: UUID) -> None:
    """Its grace is over. The service's own worker waits for no backup: it is not to find that out before."""
    await fetch("UPDATE databases SET destroy_at = now() WHERE uuid = $1", database)
    await steps.destroy_database(database)


async def _is_active(caller: Caller, database: UUID) -> bool:
    return bool(data_of(await caller.get(f"/databases/{database}"))["status"] == "active")


async def _is_gone(service: RunningService, backup: UUID) -> bool:
    """From the store."""
    return not [one for one in (service.folder / "backups" / str(backup)).rglob("*") if one.is_file()]
