"""What is open after its deadline is told of once; what is open although it is over is ended."""

from datetime import timedelta
from uuid import UUID

import pytest

from app.backups.requests import request_backup
from app.contracts.backups import BackupKind
from app.operations.kinds import OperationType
from app.operations.overdue import report_overdue
from app.store.session import execute, fetch, transaction
from app.upkeep.reconcile.operations import end_astray
from app.upkeep.reconcile.records import check_records
from tests.operations.support import active, code_of, latest, provisioning, row
from tests.support.answers import data_of
from tests.support.in_process import LoneApi

NOW = timedelta(0)


async def rules() -> dict[str, str]:
    """By rule, what it says, of those about operations."""
    return {one.rule: one.detail for one in await check_records(NOW) if one.rule.startswith("operation_")}


async def test_its_team_gets_one_event(lone: LoneApi) -> None:
    caller, database = await provisioning(lone)
    assert await report_overdue() == 0
    assert await rules() == {}
    await execute("UPDATE operations SET deadline_at = now() - interval '1 s'")
    assert "operation_overdue" in await rules()
    assert [await report_overdue() for _ in range(2)] == [1, 0]
    rows = await fetch(
        "SELECT payload ->> 'event' AS event, payload -> 'data' ->> 'uuid' AS uuid, team_id, database_id FROM events"
        " WHERE type = 'operation.overdue'"
    )
    operation = await latest(database)
    expected = ("operation.overdue", str(operation.uuid), caller.team_id, operation.database_id)
    assert [tuple(row) for row in rows] == [expected]
    assert operation.overdue_at is not None
    # It goes on, and is named for as long as it does.
    assert str(database) in (await rules())["operation_overdue"]
    data_of(await caller.delete(f"/databases/{database}"), 200)
    assert "operation_overdue" not in await rules()


async def test_what_ended_in_time_is_not_overdue(lone: LoneApi) -> None:
    await active(lone)
    await execute("UPDATE operations SET deadline_at = now() - interval '1 s'")
    assert await report_overdue() == 0
    assert await rules() == {}


async def test_more_than_one_transaction_takes(lone: LoneApi) -> None:
    _, database = await provisioning(lone)
    await execute(
        "INSERT INTO operations (uuid, team_id, database_id, engine, type, status, steps, deadline_at)"
        " SELECT gen_random_uuid(), team_id, id, engine, 'limits', 'pending', '[]', now() - interval '1 s'"
        " FROM databases, generate_series(1, 150) WHERE uuid = $1",
        database,
    )
    assert await report_overdue() == 150


@pytest.mark.parametrize(
    ("of_database", "type", "status", "code"),
    [
        ("status = 'active'", OperationType.CREATE, "succeeded", None),
        ("status = 'deleted'", OperationType.CREATE, "cancelled", "database_deleted"),
        ("status = 'deleted', destroyed_at = now()", OperationType.DELETE, "succeeded", None),
        ("status = 'active'", OperationType.DELETE, "cancelled", "undeleted"),
        ("status = 'active', limits_applied = 7", OperationType.LIMITS, "succeeded", None),
        ("status = 'active', access_applied = 7", OperationType.PAUSE, "succeeded", None),
        ("status = 'active', access_applied = 7", OperationType.RESUME, "succeeded", None),
        ("status = 'active', access_applied = 7", OperationType.UNDELETE, "succeeded", None),
        ("status = 'deleted'", OperationType.LIMITS, "cancelled", "database_deleted"),
    ],
)
async def test_what_is_over_is_ended(
    lone: LoneApi, of_database: str, type: OperationType, status: str, code: str | None
) -> None:
    _, database = await active(lone)
    await left_open(database, type, of_database)
    assert "operation_astray" in await rules()
    (sentence,) = await end_astray(NOW)
    assert str(database) in sentence
    ended = await latest(database)
    assert (ended.status.value, code_of(ended)) == (status, code)
    assert ended.finished_at is not None
    assert await rules() == {}


@pytest.mark.parametrize(
    ("of_database", "type"),
    [
        ("status = 'provisioning'", OperationType.CREATE),
        ("status = 'deleted'", OperationType.DELETE),
        ("status = 'active', limits_applied = 6", OperationType.LIMITS),
        ("status = 'paused', access_applied = 6", OperationType.RESUME),
        ("status = 'active'", OperationType.APPLY_BLUEPRINT),
    ],
)
async def test_what_is_under_way_is_left_alone(lone: LoneApi, of_database: str, type: OperationType) -> None:
    _, database = await active(lone)
    await left_open(database, type, of_database)
    assert await rules() == {}
    assert await end_astray(NOW) == []
    assert (await latest(database)).finished_at is None


@pytest.mark.parametrize(
    ("status", "ends", "code"),
    [
        ("pending", None, None),
        ("running", None, None),
        ("completed", "succeeded", None),
        ("failed", "failed", "backup_failed"),
        ("cancelled", "cancelled", "cancelled"),
    ],
)
async def test_a_final_backup_goes_by_its_own_status(
    lone: LoneApi, status: str, ends: str | None, code: str | None
) -> None:
    """Its database is deleted, and it may wait its turn for hours."""
    _, database = await active(lone)
    await execute("UPDATE databases SET status = 'deleted', deleted_at = now() WHERE uuid = $1", database)
    async with transaction():
        requested = await request_backup(await row(database), BackupKind.FINAL)
    await execute("UPDATE operations SET changed_at = now() - interval '1 h', deadline_at = NULL")
    await execute("UPDATE backups SET status = $2 WHERE uuid = $1", requested.record.uuid, status)
    assert ("operation_astray" in await rules()) == (ends is not None)
    assert len(await end_astray()) == (1 if ends else 0)
    ended = await latest(database, OperationType.BACKUP)
    if ends is None:
        assert ended.finished_at is None
    else:
        assert (ended.status.value, code_of(ended)) == (ends, code)
    assert await rules() == {}


async def left_open(database: UUID, type: OperationType, of_database: str) -> None:
    """An operation of this type that is to reach revision 7, on a database in that state."""
    await execute(f"UPDATE databases SET {of_database} WHERE uuid = $1", database)
    await execute(
        "INSERT INTO operations (uuid, team_id, database_id, engine, type, status, steps, revision, changed_at)"
        " SELECT gen_random_uuid(), team_id, id, engine, $2, 'running', '[]', 7, now() - interval '1 s'"
        " FROM databases WHERE uuid = $1",
        database,
        type.value,
    )


async def test_what_changed_a_moment_ago_is_given_time(lone: LoneApi) -> None:
    _, database = await active(lone)
    await left_open(database, OperationType.CREATE, "status = 'active'")
    assert await end_astray() == []
