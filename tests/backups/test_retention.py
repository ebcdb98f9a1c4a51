"""When backups are due, how many at once, what is kept, and what goes: by rows alone."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import msgspec
import pytest

from app.backups import policies, records
from app.backups.admission import BackupLimits, UnderWay, WaitingBackup, admit_waiting, choose
from app.backups.policies import next_backup
from app.backups.requests import PRIORITIES, request_backup
from app.backups.restore_tests import begin_test, find_due_tests, request_due_test
from app.backups.retention import expire, find_expiring, find_removable, make_room, remove
from app.backups.scheduling import enrol, find_due, request_due
from app.contracts.backups import BackupKind, BackupStatus, ProveBackupInput
from app.contracts.base import Engine
from app.databases.records import DatabaseRecord, NotWanted, find_for_update
from app.quotas.plans import DEFAULT_PLANS, BackupRules
from app.store.session import fetch, fetch_scalar, transaction
from tests.backups.support import TERMS, add_backup, database_row, status_of
from tests.operations.support import active
from tests.support.answers import body_of, data_of, error_of
from tests.support.backups import backed_up, files_of, folder_store
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.meeting import rows_held, waiters
from tests.support.together import together
from tests.support.waiting import until
from workers.backups import end_expired_backups, take_due_backups
from workers.backups import test_due_backups as run_due_tests


def test_moments_are_spread_over_the_interval() -> None:
    now = datetime(2026, 11, 22, 12, tzinfo=UTC)
    rules = BackupRules(every_hours=24)
    moments = [next_backup(TERMS, uuid4(), rules, now) - now for _ in range(2400)]
    assert all(timedelta(0) < one <= timedelta(hours=24) for one in moments)
    hours = Counter(int(one.total_seconds() // 3600) for one in moments)
    assert len(hours) == 24
    assert max(hours.values()) < 200


def test_a_moment_comes_once_in_each_interval() -> None:
    database, rules = uuid4(), BackupRules(every_hours=6)
    at = datetime(2026, 11, 22, 12, tzinfo=UTC)
    for _ in range(4):
        after = next_backup(TERMS, database, rules, at)
        assert after - at <= timedelta(hours=6)
        assert abs(next_backup(TERMS, database, rules, after + timedelta(seconds=1)) - after - timedelta(hours=6)) < (
            timedelta(seconds=1)
        )
        at = after + timedelta(minutes=1)


def waiting(team: int, host: int, kind: BackupKind = BackupKind.SCHEDULED) -> WaitingBackup:
    return WaitingBackup(
        uuid=uuid4(),
        database=uuid4(),
        engine=Engine.POSTGRES,
        region="test-1",
        team_id=team,
        host_id=host,
        kind=kind,
        priority=PRIORITIES[kind],
    )


def test_few_at_once_on_a_host_and_of_a_team() -> None:
    queue = [waiting(1, 1), waiting(1, 2), waiting(1, 3), waiting(2, 1), waiting(3, 1), waiting(3, 2)]
    others = UnderWay(team_id=4, region="test-1", host_id=2, in_restore=False, number=1)
    chosen = choose(queue, [others], BackupLimits(per_host=2, per_team=2))
    assert chosen == [queue[0], queue[1], queue[3]]


def test_a_team_never_takes_all_of_a_host() -> None:
    queue = [*(waiting(1, 1) for _ in range(9)), waiting(2, 1)]
    assert queue[-1] in choose(queue, [], BackupLimits())


def test_what_a_restore_waits_for_waits_for_no_other_backup() -> None:
    in_restore = [waiting(1, 1, BackupKind.BEFORE_RESTORE) for _ in range(3)]
    limits = BackupLimits(per_host=2, per_team=2)
    others = UnderWay(team_id=1, region="test-1", host_id=1, in_restore=False, number=2)
    assert choose([*in_restore, waiting(2, 1)], [others], limits) == in_restore[:2]
    restoring = UnderWay(team_id=1, region="test-1", host_id=1, in_restore=True, number=2)
    after = waiting(1, 1)
    assert choose([in_restore[0], after], [restoring], limits) == [after]


def test_one_of_a_database_at_a_time() -> None:
    one = waiting(1, 1)
    twice = msgspec.structs.replace(one, uuid=uuid4())
    assert choose([one, twice], [], BackupLimits()) == [one]


async def test_what_is_due_is_asked_for_once(lone: LoneApi) -> None:
    caller, database = await active(lone)
    assert await enrol(TERMS) == 1
    assert await enrol(TERMS) == 0
    policy = data_of(await caller.get(f"/databases/{database}/backup_policy"))
    assert policy["next_backup_at"]
    assert await find_due(10, without=[]) == []
    await fetch("UPDATE backup_policies SET backup_at = now() - interval '3 days'")
    assert await find_due(10, without=[]) == [database]
    await take_due_backups(TERMS)
    [backup] = await records.list_owned([caller.team_id], after=None, limit=9)
    assert (backup.kind, backup.status) == (BackupKind.SCHEDULED, BackupStatus.PENDING)
    assert await request_due(TERMS, database) is False
    # What was missed is not made up for more than once.
    await take_due_backups(TERMS)
    assert len(await records.list_owned([caller.team_id], after=None, limit=9)) == 1


async def test_after_an_outage_each_team_has_a_few_at_a_time(lone: LoneApi) -> None:
    caller, _ = await active(lone, name="db-0")
    for number in range(1, 7):
        await caller.create(f"db-{number}")
    await fetch("UPDATE databases SET status = 'active'")
    _, other = await active(lone, name="other")
    await enrol(TERMS)
    await fetch("UPDATE backup_policies SET backup_at = now() - interval '1 day'")
    due = await find_due(50, without=[])
    assert len(due) == 5
    assert other in due
    await take_due_backups(TERMS)
    assert len(await records.list_owned([caller.team_id], after=None, limit=50)) == 4
    assert await find_due(50, without=[]) == []
    # Two of a team, two of a host: here that is one host.
    few = BackupLimits(per_host=2, per_team=2)
    assert await admit_waiting(few) == 2
    assert await admit_waiting(few) == 0
    [row] = await fetch(
        "SELECT count(*) AS n, count(DISTINCT team_id) AS teams FROM backups WHERE admitted_at > '1970-01-01'"
    )
    assert (row["n"], row["teams"]) == (2, 2)


async def test_what_has_waited_for_long_comes_before_what_is_asked_for_now(lone: LoneApi) -> None:
    _, patient = await active(lone, name="patient")
    await enrol(TERMS)
    await fetch("UPDATE backup_policies SET backup_at = now() - interval '1 day'")
    await take_due_backups(TERMS)
    caller, hasty = await active(lone, name="hasty")
    data_of(await caller.post(f"/databases/{hasty}/backups", {}), 202)
    one = BackupLimits(per_host=1)
    await fetch("UPDATE backups SET admitted_at = NULL")

    async def next_one() -> UUID:
        await fetch("UPDATE backups SET admitted_at = NULL")
        assert await admit_waiting(one) == 1
        [row] = await fetch("SELECT database_uuid FROM backups WHERE admitted_at IS NOT NULL")
        return UUID(str(row["database_uuid"]))

    assert await next_one() == hasty
    await fetch("UPDATE backups SET created_at = now() - interval '11 minutes' WHERE database_uuid = $1", patient)
    assert await next_one() == patient


async def test_what_a_restore_waits_for_has_places_of_its_own(lone: LoneApi) -> None:
    caller, closed = await active(lone, name="db-0")
    for number in range(1, 4):
        await caller.create(f"db-{number}")
    await fetch("UPDATE databases SET status = 'active'")
    async with transaction():
        for [other] in await fetch("SELECT uuid FROM databases WHERE uuid <> $1", closed):
            await request_backup(await _locked(other), BackupKind.SCHEDULED)
    await fetch("UPDATE backups SET created_at = now() - interval '1 day'")
    one = BackupLimits(per_host=1, per_team=1)
    assert await admit_waiting(one) == 1
    async with transaction():
        first = await request_backup(await _locked(closed), BackupKind.BEFORE_RESTORE)
    assert await admit_waiting(one) == 1
    [start] = await fetch("SELECT input FROM workflow_starts WHERE input ->> 'backup' = $1", str(first.record.uuid))
    assert msgspec.json.decode(start["input"])["in_restore"] is True
    assert await admit_waiting(one) == 0


async def test_those_for_a_busy_host_hold_up_no_others_of_their_team(lone: LoneApi) -> None:
    caller, first = await active(lone, name="first")
    busy = await database_row(str(first))
    for name in ("second", "third"):
        await caller.create(name)
    second, third = [row["uuid"] for row in await fetch("SELECT uuid FROM databases WHERE name <> 'first' ORDER BY id")]
    await fetch("UPDATE databases SET host_id = $2 WHERE uuid = $1", third, await lone.add_host())
    under_way = await _under_way(lone, busy, 3)
    long_ago = datetime.now(UTC) - timedelta(minutes=11)
    for one in (first, second):
        await add_backup(await database_row(str(one)), status=BackupStatus.PENDING, created_at=long_ago)
    wanted = await add_backup(await database_row(str(third)), status=BackupStatus.PENDING)
    limits = BackupLimits(per_host=3, per_team=2)
    assert await admit_waiting(limits) == 1
    assert await _admitted() == {wanted}
    await fetch("UPDATE backups SET status = 'failed' WHERE uuid = $1", under_way[0])
    assert await admit_waiting(limits) == 1
    assert await admit_waiting(limits) == 0


async def test_a_region_without_a_worker_holds_up_none_of_its_teams_in_another(lone: LoneApi) -> None:
    caller, here = await active(lone, name="here")
    await lone.add_host(region="eu-west-1")
    for number in range(5):
        answer = await caller.create(f"there-{number}", region="eu-west-1")
        there = await database_row(data_of(answer, 202)["uuid"])
        if number:  # as many as are asked for at once; each waits for a worker
            await add_backup(there, status=BackupStatus.PENDING, admitted_at=datetime.now(UTC))
    await fetch("UPDATE databases SET status = 'active'")
    await enrol(TERMS)
    await fetch("UPDATE backup_policies SET backup_at = now() - interval '1 day'")
    assert await find_due(50, without=[]) == [here]
    await take_due_backups(TERMS)
    assert await admit_waiting(BackupLimits()) == 1


@pytest.mark.parametrize("under_way", [0, 3])
async def test_a_thousand_teams_for_one_host_hold_up_nobody_on_another(lone: LoneApi, under_way: int) -> None:
    _, crowded = await active(lone)
    busy = await database_row(str(crowded))
    _, alone = await active(lone)
    await fetch("UPDATE databases SET host_id = $2 WHERE uuid = $1", alone, await lone.add_host())
    long_ago = datetime.now(UTC) - timedelta(minutes=11)
    same = "database_id, database_uuid, database_name, engine, region, plan, quotas, kind, status, priority, created_at"
    await fetch(
        "WITH crowd AS (INSERT INTO teams (name, tier) SELECT 'one', 'pro' FROM generate_series(1, 1001) RETURNING id)"
        f" INSERT INTO backups (uuid, team_id, {same}) SELECT gen_random_uuid(), crowd.id, {same}"
        " FROM backups, crowd WHERE uuid = $1",
        await add_backup(busy, status=BackupStatus.PENDING, created_at=long_ago),
    )
    await _under_way(lone, busy, under_way)
    wanted = await add_backup(await database_row(str(alone)), status=BackupStatus.PENDING)
    await admit_waiting(BackupLimits(per_host=3))
    assert wanted in await _admitted()


async def _under_way(lone: LoneApi, beside: DatabaseRecord, number: int) -> list[UUID]:
    """Backups that are being taken of databases on the same host, each another team's."""
    backups: list[UUID] = []
    for _ in range(number):
        _, other = await active(lone)
        await fetch("UPDATE databases SET host_id = $2 WHERE uuid = $1", other, beside.host_id)
        backups.append(await add_backup(await database_row(str(other)), status=BackupStatus.RUNNING))
    return backups


async def _admitted() -> set[UUID]:
    """Those that wait for their workflow."""
    rows = await fetch("SELECT uuid FROM backups WHERE status = 'pending' AND admitted_at IS NOT NULL")
    return {row["uuid"] for row in rows}


async def _locked(database: UUID) -> DatabaseRecord:
    found = await find_for_update(database)
    assert found is not None
    return found


async def test_a_policy_is_changed_and_goes_back_to_the_plans(lone: LoneApi) -> None:
    caller, database = await active(lone)
    path = f"/databases/{database}/backup_policy"
    shipped = data_of(await caller.get(path))
    plan = DEFAULT_PLANS.by_name["free"].backups
    assert (shipped["every_hours"], shipped["keep_last"]) == (plan.every_hours, plan.keep_last)
    changed = data_of(await caller.patch(path, {"every_hours": 2, "keep_days": 30, "keep_last": 5}))
    assert (changed["every_hours"], changed["keep_days"], changed["keep_last"]) == (2, 30, 5)
    assert changed["next_backup_at"]
    off = data_of(await caller.patch(path, {"enabled": False}))
    assert (off["enabled"], off["next_backup_at"], off["every_hours"]) == (False, None, 2)
    assert await enrol(TERMS) == 0
    back = data_of(await caller.patch(path, {"enabled": None, "every_hours": None}))
    assert (back["enabled"], back["every_hours"], back["keep_days"]) == (True, plan.every_hours, 30)


@together(
    ("field", "value"),
    [("every_hours", 0), ("every_hours", 721), ("keep_days", 0), ("keep_last", 0), ("test_every_days", 366)],
)
async def test_rules_out_of_range_name_their_field(lone: LoneApi, field: str, value: int) -> None:
    caller, database = await active(lone)
    answer = await caller.patch(f"/databases/{database}/backup_policy", {field: value})
    assert error_of(answer, 422, "invalid_field")["details"]["field"] == field


async def test_the_newest_stay_whatever_their_age(lone: LoneApi) -> None:
    caller, uuid = await active(lone)
    database = await database_row(str(uuid))
    data_of(await caller.patch(f"/databases/{uuid}/backup_policy", {"keep_last": 2}))
    old, older, oldest = [await add_backup(database, days_ago=n, expires_in_days=-1) for n in (1, 2, 3)]
    forever = await add_backup(database, days_ago=9, kind=BackupKind.MANUAL)
    assert await find_expiring(TERMS.plans, 10, without=[]) == [uuid]
    assert await expire(TERMS, uuid) == 1
    states = [await status_of(one) for one in (old, older, oldest, forever)]
    assert states == ["completed", "completed", "expired", "completed"]
    fresh = await add_backup(database, expires_in_days=7)
    assert await find_expiring(TERMS.plans, 10, without=[]) == [uuid]
    assert await expire(TERMS, uuid) == 1
    assert [await status_of(one) for one in (fresh, old, older)] == ["completed", "completed", "expired"]


async def test_those_of_a_database_are_locked_by_their_ids(lone: LoneApi) -> None:
    """As everybody locks several: in another order two of them would wait for each other."""
    _, uuid = await active(lone)
    database = await database_row(str(uuid))
    older, newer = [await add_backup(database, days_ago=n, expires_in_days=-1) for n in (2, 1)]

    async def waits() -> bool:
        return await waiters() == 1

    async with rows_held(lone.control_dsn, f"backups WHERE uuid = '{older}'") as holder:
        expiring = asyncio.create_task(expire(TERMS, uuid))
        await until(waits)
        await holder.execute("SELECT 1 FROM backups WHERE uuid = $1 FOR NO KEY UPDATE NOWAIT", newer)
    assert await expiring == 1
    assert [await status_of(one) for one in (older, newer)] == ["expired", "completed"]


async def test_what_stays_for_good_holds_up_nothing(lone: LoneApi) -> None:
    """More databases that are gone than one look does, each with a last backup; behind them some with two."""
    caller = await lone.caller()

    async def gone(number: int, *, backups: int) -> list[UUID]:
        made = [uuid4() for _ in range(number)]
        await fetch(
            "INSERT INTO backups (uuid, team_id, database_uuid, database_name, engine, region, plan, quotas, kind,"
            " status, priority, consistent_at, completed_at, expires_at)"
            " SELECT gen_random_uuid(), $2, gone, 'gone', 'postgres', 'test-1', 'free', '{}', 'final', 'completed', 5,"
            " now(), now(), now() FROM unnest($1::uuid[]) AS gone, generate_series(1, $3)",
            made,
            caller.team_id,
            backups,
        )
        return made

    assert DEFAULT_PLANS.by_name["free"].backups.keep_last == 1
    await gone(1500, backups=1)
    over = await gone(20, backups=2)
    await end_expired_backups(TERMS)
    expired = await fetch("SELECT database_uuid FROM backups WHERE status = 'expired'")
    assert sorted(row["database_uuid"] for row in expired) == sorted(over)
    assert await find_expiring(TERMS.plans, 10, without=[]) == []


async def test_only_what_may_go_is_found(lone: LoneApi) -> None:
    caller, uuid = await active(lone)
    database = await database_row(str(uuid))
    data_of(await caller.patch(f"/databases/{uuid}/backup_policy", {"keep_last": 2}))
    newer, older = [await add_backup(database, days_ago=n, expires_in_days=-1) for n in (1, 2)]
    assert await find_expiring(TERMS.plans, 10, without=[]) == []
    used = await add_backup(database, days_ago=3, expires_in_days=-1)
    assert await find_expiring(TERMS.plans, 10, without=[]) == [uuid]
    assert await find_expiring(TERMS.plans, 10, without=[uuid]) == []
    await fetch(
        "INSERT INTO restorations (uuid, database_id, kind, backup_uuid)"
        " VALUES (gen_random_uuid(), $1, 'in_place', $2)",
        database.id,
        used,
    )
    assert await find_expiring(TERMS.plans, 10, without=[]) == []
    assert await expire(TERMS, uuid) == 0
    # Restored from it, it counts as the newest.
    await fetch("UPDATE restorations SET outcome = 'completed', ended_at = now()")
    assert await find_expiring(TERMS.plans, 10, without=[]) == [uuid]
    assert await expire(TERMS, uuid) == 1
    assert [await status_of(one) for one in (newer, older, used)] == ["completed", "expired", "completed"]
    assert await find_expiring(TERMS.plans, 10, without=[]) == []


async def test_what_has_ended_goes_from_the_store_and_nothing_else(lone: LoneApi, tmp_path: Path) -> None:
    _, uuid = await active(lone)
    database = await database_row(str(uuid))
    store = folder_store(tmp_path)
    kept, gone = (await backed_up(store, b"a dump")).backup, (await backed_up(store, b"another")).backup
    for backup, status in ((kept, BackupStatus.COMPLETED), (gone, BackupStatus.EXPIRED)):
        await fetch("UPDATE backups SET uuid = $2 WHERE uuid = $1", await add_backup(database, status=status), backup)
    before = {name for name in files_of(tmp_path) if str(kept) in name}
    # Somebody may still write.
    await fetch("UPDATE backups SET beat_at = now() WHERE uuid = $1", gone)
    assert await find_removable(database.region, 10, without=[]) == []
    await fetch("UPDATE backups SET beat_at = now() - interval '2 minutes' WHERE uuid = $1", gone)
    assert await find_removable("elsewhere", 10, without=[]) == []
    assert await find_removable(database.region, 10, without=[]) == [gone]
    await remove(store, kept)
    await remove(store, gone)
    assert set(files_of(tmp_path)) == before
    assert await find_removable(database.region, 10, without=[]) == []


async def test_a_team_may_store_as_much_as_its_tier_allows(lone: LoneApi) -> None:
    caller, uuid = await active(lone)
    limit = int(DEFAULT_PLANS.tiers["pro"].backup_storage_gb * 2**30)
    await add_backup(await database_row(str(uuid)), days_ago=1, stored_bytes=limit - 2**29)
    data_of(await caller.post(f"/databases/{uuid}/backups", {}), 202)


async def test_scheduled_ones_go_early_where_a_team_has_no_room(lone: LoneApi) -> None:
    caller, uuid = await active(lone)
    database = await database_row(str(uuid))
    limit = int(DEFAULT_PLANS.tiers["pro"].backup_storage_gb * 2**30)
    await enrol(TERMS)
    data_of(await caller.patch(f"/databases/{uuid}/backup_policy", {"keep_last": 1}))
    await fetch("UPDATE backup_policies SET backup_at = now()")
    old = await add_backup(database, days_ago=2, stored_bytes=limit // 2)
    new = await add_backup(database, days_ago=1, stored_bytes=limit // 2)
    error_of(await caller.post(f"/databases/{uuid}/backups", {}), 422, "team_limit_reached")
    assert await request_due(TERMS, uuid)
    assert [await status_of(one) for one in (old, new)] == ["expired", "completed"]
    await fetch("UPDATE backups SET status = 'cancelled' WHERE status = 'pending'")
    await fetch("UPDATE backups SET stored_bytes = $2 WHERE uuid = $1", new, limit)
    await fetch("UPDATE backup_policies SET backup_at = now()")
    # The one that its policy keeps stays; that there is none of now is said.
    assert await request_due(TERMS, uuid) is False
    [refused] = [
        one for one in await records.list_owned([caller.team_id], after=None, limit=9) if one.status == "failed"
    ]
    assert "as its tier allows" in (refused.error or "")
    [event] = await fetch("SELECT payload ->> 'event' AS event FROM events WHERE type = 'backup.failed'")
    assert event["event"] == "backup.failed"


async def test_what_keep_last_promises_stays_where_a_team_has_no_room(lone: LoneApi) -> None:
    caller, uuid = await active(lone)
    database = await database_row(str(uuid))
    limit = int(DEFAULT_PLANS.tiers["pro"].backup_storage_gb * 2**30)
    data_of(await caller.patch(f"/databases/{uuid}/backup_policy", {"keep_last": 2}))
    made = [await add_backup(database, days_ago=days, stored_bytes=limit) for days in (4, 3, 2, 1)]
    async with transaction():
        assert not await make_room(TERMS.plans, caller.team_id)
    assert [await status_of(one) for one in made] == ["expired", "expired", "completed", "completed"]
    # Without a rule of its own that of its plan holds.
    data_of(await caller.patch(f"/databases/{uuid}/backup_policy", {"keep_last": None}))
    async with transaction():
        assert not await make_room(TERMS.plans, caller.team_id)
    assert DEFAULT_PLANS.by_name[database.plan].backups.keep_last == 1
    assert [await status_of(one) for one in made[2:]] == ["expired", "completed"]


async def test_what_another_database_was_restored_from_is_not_the_newest_of_its_own(lone: LoneApi) -> None:
    caller, uuid = await active(lone)
    _, other = await active(lone)
    database, unlike = await database_row(str(uuid)), await database_row(str(other))
    await fetch("UPDATE databases SET team_id = $2 WHERE uuid = $1", other, caller.team_id)
    limit = int(DEFAULT_PLANS.tiers["pro"].backup_storage_gb * 2**30)
    await add_backup(unlike, kind=BackupKind.MANUAL, stored_bytes=limit)
    data_of(await caller.patch(f"/databases/{uuid}/backup_policy", {"keep_last": 1}))
    used, newest = [await add_backup(database, days_ago=days) for days in (2, 1)]
    await fetch(
        "INSERT INTO restorations (uuid, database_id, kind, backup_uuid, outcome, ended_at)"
        " VALUES (gen_random_uuid(), $1, 'in_place', $2, 'completed', now())",
        unlike.id,
        used,
    )
    await fetch("UPDATE backups SET started_at = now() - interval '1 day'")
    async with transaction():
        assert not await make_room(TERMS.plans, caller.team_id)
    assert [await status_of(one) for one in (used, newest)] == ["expired", "completed"]


async def test_of_those_before_a_deletion_or_a_restore_the_newest_of_each_kind_stays(lone: LoneApi) -> None:
    caller, uuid = await active(lone)
    _, other = await active(lone)
    database, unlike = await database_row(str(uuid)), await database_row(str(other))
    await fetch("UPDATE databases SET team_id = $2 WHERE uuid = $1", other, caller.team_id)
    limit = int(DEFAULT_PLANS.tiers["pro"].backup_storage_gb * 2**30)
    manual = await add_backup(database, kind=BackupKind.MANUAL, days_ago=9, stored_bytes=limit)
    kinds = (BackupKind.FINAL, BackupKind.BEFORE_RESTORE) * 2
    older = [await add_backup(database, kind=kind, days_ago=8) for kind in kinds]
    elsewhere = [await add_backup(unlike, kind=kind, days_ago=8) for kind in kinds[:2]]
    for one in (database, unlike):  # what its policy keeps
        await add_backup(one, kind=BackupKind.MANUAL)
    async with transaction():
        assert not await make_room(TERMS.plans, caller.team_id)
    assert [await status_of(one) for one in older] == ["expired", "expired", "completed", "completed"]
    assert [await status_of(one) for one in (manual, *elsewhere)] == ["completed"] * 3


async def test_a_restore_in_place_is_refused_for_what_keep_last_promises_alone(lone: LoneApi) -> None:
    caller, uuid = await active(lone)
    database = await database_row(str(uuid))
    limit = int(DEFAULT_PLANS.tiers["pro"].backup_storage_gb * 2**30)
    source = await add_backup(database, kind=BackupKind.MANUAL, days_ago=9, stored_bytes=limit, **_DUMPED)
    for kind in (BackupKind.SCHEDULED, BackupKind.BEFORE_RESTORE, BackupKind.BEFORE_RESTORE):
        await add_backup(database, kind=kind)
    path, body = f"/databases/{uuid}/restorations", {"backup_uuid": str(source)}

    async def accepted() -> None:
        operation = body_of(await caller.post(path, body), 202)["operation"]["uuid"]
        data_of(await caller.post(f"/operations/{operation}/cancellations", None))

    await accepted()
    data_of(await caller.patch(f"/databases/{uuid}/backup_policy", {"keep_last": 4}))
    refused = error_of(await caller.post(path, body), 422, "team_limit_reached")
    assert refused["details"] == {"resource": "backup_storage_gb", "limit": limit // 2**30}
    # Of what isn't whole, since its host was lost, nothing is taken first.
    await fetch(
        "INSERT INTO restorations (uuid, database_id, kind, outcome, ended_at)"
        " VALUES (gen_random_uuid(), $1, 'move', 'failed', now())",
        database.id,
    )
    await fetch("UPDATE databases SET status = 'paused', restoring_at = now() WHERE uuid = $1", uuid)
    await accepted()


async def test_they_go_by_number_too_the_oldest_first_and_no_more_than_need_be(lone: LoneApi) -> None:
    caller, uuid = await active(lone)
    database = await database_row(str(uuid))
    await fetch("UPDATE teams SET tier = 'free' WHERE id = $1", caller.team_id)
    number = DEFAULT_PLANS.tiers["free"].backups
    made = [await add_backup(database, kind=BackupKind.FINAL, days_ago=days) for days in range(number + 1, 0, -1)]
    for counted, gone in ((False, 0), (True, 2), (True, 2)):
        async with transaction():
            assert await make_room(TERMS.plans, caller.team_id, counted=counted)
        assert [await status_of(one) for one in made] == ["expired"] * gone + ["completed"] * (len(made) - gone)


_DUMPED: dict[str, Any] = {
    "format": '{"flavour": "postgres", "server_version": "18.6", "tool": "pg_dump 18.6", "layout": ""}',
    "quotas": "{}",
}


async def test_what_is_being_restored_from_stays(lone: LoneApi) -> None:
    caller, uuid = await active(lone)
    database = await database_row(str(uuid))
    limit = int(DEFAULT_PLANS.tiers["pro"].backup_storage_gb * 2**30)
    await enrol(TERMS)
    for days in (3, 2, 1):
        await add_backup(database, days_ago=days)
    used = await add_backup(database, days_ago=9, expires_in_days=-1, stored_bytes=limit, **_DUMPED)
    other = await add_backup(database, days_ago=8, expires_in_days=-1)
    restored = data_of(await _fill(caller, used), 202)["uuid"]
    refused = error_of(await caller.delete(f"/backups/{used}"), 409, "backup_being_restored")
    [operation] = data_of(await caller.get("/operations", params={"database_uuid": restored}))
    assert refused["details"] == {"database_uuid": restored, "operation_uuid": operation["uuid"]}
    rules = {"enabled": True, "keep_last": 1}
    data_of(await caller.patch(f"/databases/{uuid}/backup_policy", rules))
    assert await expire(TERMS, uuid) == 1
    assert [await status_of(one) for one in (used, other)] == ["completed", "expired"]
    async with transaction():
        assert not await make_room(TERMS.plans, caller.team_id)
    assert await status_of(used) == "completed"
    await fetch("UPDATE restorations SET ended_at = now()")
    assert await expire(TERMS, uuid) == 1
    data_of(await caller.delete(f"/backups/{used}"))


async def test_what_there_was_stays_until_a_restore_in_place_has_ended(lone: LoneApi) -> None:
    caller, uuid = await active(lone)
    backup = await add_backup(await database_row(str(uuid)), kind=BackupKind.BEFORE_RESTORE)
    await fetch(
        "INSERT INTO restorations (uuid, database_id, kind, before_uuid)"
        " SELECT gen_random_uuid(), id, 'in_place', $2 FROM databases WHERE uuid = $1",
        uuid,
        backup,
    )
    error_of(await caller.delete(f"/backups/{backup}"), 409, "backup_being_restored")


async def test_of_a_deletion_and_a_restore_one_is_refused(lone: LoneApi) -> None:
    """In turns that begin with either, at the same time: never both, and never neither."""
    caller, uuid = await active(lone)
    database = await database_row(str(uuid))
    await lone.warm_up()
    for turn in range(20):
        backup = await add_backup(database, **_DUMPED)
        both = [caller.delete(f"/backups/{backup}"), _fill(caller, backup)]
        answers = await asyncio.gather(*(both if turn % 2 else reversed(both)))
        deleted, filled = answers if turn % 2 else reversed(answers)
        assert (deleted.status_code, filled.status_code) in {(200, 404), (409, 202)}, (deleted.text, filled.text)
        await fetch("UPDATE restorations SET ended_at = now()")


async def _fill(caller: Caller, backup: UUID) -> httpx.Response:
    return await caller.post("/databases", {"name": "filled", "source": {"backup_uuid": str(backup)}})


async def test_the_oldest_proof_comes_first(lone: LoneApi) -> None:
    _, first = await active(lone)
    _, second = await active(lone)
    await enrol(TERMS)
    for uuid, ago in ((first, 1), (second, 2)):
        await add_backup(await database_row(str(uuid)), expires_in_days=3)
        await fetch(
            "UPDATE backup_policies p SET test_at = now() - make_interval(days => $2) FROM databases d"
            " WHERE d.id = p.database_id AND d.uuid = $1",
            uuid,
            ago,
        )
    # One that a team has asked for takes no place of the schedule's.
    await fetch("UPDATE backups SET proof_status = 'running'")
    assert await find_due_tests(10, 1, without=[]) == [second]
    await fetch("UPDATE backups SET proof_status = 'pending'")
    assert await request_due_test(TERMS, second)
    assert await find_due_tests(10, 1, without=[]) == []
    await fetch("UPDATE backups SET proof_status = 'proven'")
    assert await find_due_tests(10, 1, without=[]) == [first]


async def test_the_test_of_a_deleted_backup_takes_no_place_of_the_schedule(lone: LoneApi) -> None:
    caller, first = await active(lone)
    _, second = await active(lone)
    await enrol(TERMS)
    await fetch("UPDATE backup_policies SET test_at = now()")
    [backup, _] = [await add_backup(await database_row(str(uuid)), expires_in_days=3) for uuid in (first, second)]
    assert await request_due_test(TERMS, first)
    assert await find_due_tests(10, 1, without=[]) == []
    data_of(await caller.delete(f"/backups/{backup}"))
    await _expect_over(backup)
    assert await find_due_tests(10, 1, without=[]) == [second]


async def test_the_test_of_a_deleted_backup_takes_no_place_of_its_team(lone: LoneApi) -> None:
    caller, uuid = await active(lone)
    database = await database_row(str(uuid))
    backups = [await add_backup(database) for _ in range(DEFAULT_PLANS.tiers["pro"].backup_tests + 1)]
    for backup in backups[:-1]:
        data_of(await caller.post(f"/backups/{backup}/restore_tests", None), 202)
    another = f"/backups/{backups[-1]}/restore_tests"
    error_of(await caller.post(another, None), 429, "too_many_under_way")
    data_of(await caller.delete(f"/backups/{backups[0]}"))
    await _expect_over(backups[0])
    data_of(await caller.post(another, None), 202)


async def _expect_over(backup: UUID) -> None:
    """Its first restore test ends without a result."""
    record = await records.find(backup)
    assert record is not None
    test = ProveBackupInput(
        database=record.database,
        engine=record.engine,
        region=record.region,
        team_id=record.team_id,
        backup=backup,
        number=1,
    )
    async with transaction():
        with pytest.raises(NotWanted):
            await begin_test(test)


async def test_a_test_fails_at_once_where_no_host_serves_the_region(lone: LoneApi) -> None:
    caller, uuid = await active(lone)
    await enrol(TERMS)
    backup = await add_backup(await database_row(str(uuid)), region="us-west-9", **_DUMPED)
    asked = data_of(await caller.post(f"/backups/{backup}/restore_tests", {}), 201)
    assert (asked["proof"]["status"], asked["proof"]["error"]) == (
        "failed",
        "No host serves its engine in its region any more.",
    )
    await fetch("UPDATE backup_policies SET test_at = now()")
    await run_due_tests(TERMS)
    record = await records.find(backup)
    assert record is not None
    assert (record.proof_status, record.proof_number) == ("failed", 2)
    assert await fetch_scalar(bool, "SELECT test_at > now() FROM backup_policies")
    assert await fetch("SELECT 1 FROM workflow_starts WHERE workflow = 'ProveBackup'") == []


async def test_refusals(lone: LoneApi) -> None:
    caller, uuid = await active(lone)
    stranger = await lone.caller()
    database = await database_row(str(uuid))
    backup = await add_backup(database, status=BackupStatus.RUNNING)
    for path in (f"/backups/{backup}", f"/databases/{uuid}/backups", f"/databases/{uuid}/backup_policy"):
        error_of(await stranger.get(path), 404, "not_found")
    error_of(await stranger.delete(f"/backups/{backup}"), 404, "not_found")
    error_of(await stranger.post(f"/backups/{backup}/restore_tests", None), 404, "not_found")
    error = error_of(await caller.post(f"/backups/{backup}/restore_tests", None), 422, "backup_not_completed")
    assert error["details"] == {"status": "running"}
    final = await add_backup(database, kind=BackupKind.FINAL, status=BackupStatus.RUNNING)
    error_of(await caller.delete(f"/backups/{final}"), 409, "backup_in_use")
    data_of(await caller.delete(f"/backups/{backup}"))
    error_of(await caller.get(f"/backups/{backup}"), 404, "not_found")
    error_of(await caller.delete(f"/backups/{backup}"), 404, "not_found")
    answer = await caller.post(f"/databases/{uuid}/backups", {"keep_days": 0})
    assert error_of(answer, 422, "invalid_field")["details"]["field"] == "keep_days"
    _, unmade = await active(lone)
    await fetch("UPDATE databases SET status = 'provisioning', team_id = $2 WHERE uuid = $1", unmade, caller.team_id)
    error_of(await caller.post(f"/databases/{unmade}/backups", {}), 422, "database_not_active")


async def test_a_team_sees_what_its_backups_take(lone: LoneApi) -> None:
    caller, uuid = await active(lone)
    database = await database_row(str(uuid))
    for status in (BackupStatus.COMPLETED, BackupStatus.COMPLETED, BackupStatus.EXPIRED):
        await add_backup(database, status=status, stored_bytes=1000)
    path = f"/teams/{caller.team_id}/backup_storage"
    assert data_of(await caller.get(path)) == {
        "object": "backup_storage",
        "team_id": caller.team_id,
        "backups": 2,
        "stored_bytes": 2000,
        "limit_bytes": int(DEFAULT_PLANS.tiers["pro"].backup_storage_gb * 2**30),
    }
    error_of(await (await lone.caller()).get(path), 404, "not_found")


async def test_a_backup_outlives_its_database(lone: LoneApi) -> None:
    caller, uuid = await active(lone)
    backup = await add_backup(await database_row(str(uuid)))
    await fetch("UPDATE databases SET status = 'deleted', deleted_at = now(), destroyed_at = now()")
    assert [one["uuid"] for one in (await caller.get("/backups")).json()["data"]] == [str(backup)]
    assert data_of(await caller.get(f"/backups/{backup}"))["status"] == "completed"
    assert (await policies.find((await database_row(str(uuid))).id)).backup_at is None
