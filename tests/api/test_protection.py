"""`deletion_protection` and `expires_at`, on the API alone."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.core.errors import DeletionProtected, InvalidField
from app.databases import expiry
from app.databases.schemas import ChangeDatabase
from app.provisioning import service
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch, transaction
from app.upkeep.reconcile.records import check_records
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.lone_pool import LonePool
from tests.support.moves import events_of, make_active
from tests.support.together import together
from workers.expiries import end_expired

GRACE = timedelta(hours=24)
FAR = timedelta(days=30)


def ahead(of_now: timedelta) -> str:
    return (datetime.now(UTC) + of_now).isoformat()


async def made(caller: Caller, **fields: Any) -> str:
    """An active database on no host, so that a DELETE waits for nobody."""
    uuid: str = data_of(await caller.create(**fields), 202)["uuid"]
    await make_active(uuid)
    await fetch("UPDATE databases SET remote_since = NULL WHERE uuid = $1", UUID(uuid))
    return uuid


async def come(uuid: str, since: timedelta = timedelta(0)) -> None:
    """Its moment is now, or was so long ago."""
    await fetch("UPDATE databases SET expires_at = now() - $2::interval WHERE uuid = $1", UUID(uuid), since)


async def status_of(uuid: str) -> str:
    return str((await fetch("SELECT status FROM databases WHERE uuid = $1", UUID(uuid)))[0]["status"])


async def test_a_protected_database_is_not_deleted_until_it_is_no_longer(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = await made(caller, deletion_protection=True)
    path = f"/databases/{uuid}"
    assert data_of(await caller.get(path))["deletion_protection"] is True
    before, events = await fetch("SELECT * FROM databases"), await events_of(uuid)
    key = str(uuid4())
    error_of(await caller.delete(path, key=key), 409, "deletion_protected")
    assert (await fetch("SELECT * FROM databases"), await events_of(uuid)) == (before, events)
    assert not await fetch("SELECT 1 FROM workflow_starts WHERE workflow = 'DeleteDatabase'")
    assert data_of(await caller.patch(path, {"deletion_protection": False}))["deletion_protection"] is False
    error_of(await caller.delete(path, key=key), 409, "deletion_protected")
    assert body_of(await caller.delete(path))["data"]["deleted"] is True


async def test_an_operator_says_that_it_is_protected(lone: LoneApi) -> None:
    uuid = UUID(await made(await lone.caller(), deletion_protection=True))
    with pytest.raises(DeletionProtected):
        async with transaction():
            await service.delete_any(DEFAULT_PLANS, uuid, GRACE)
    async with transaction():
        await service.delete_any(DEFAULT_PLANS, uuid, GRACE, even_if_protected=True)
    assert await status_of(str(uuid)) == "deleted"


async def test_a_change_leaves_what_it_does_not_name(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = await made(caller, name="before", expires_at=ahead(FAR))
    path = f"/databases/{uuid}"
    before = data_of(await caller.get(path))
    for change in ({"name": "after"}, {"deletion_protection": False}, {"expires_at": before["expires_at"]}):
        seen = data_of(await caller.patch(path, change))
        assert {field: seen[field] for field in change} == change
        assert (seen["deletion_protection"], seen["expires_at"]) == (False, before["expires_at"])
    assert data_of(await caller.patch(path, {"expires_at": None}))["expires_at"] is None
    both = {"name": "last", "deletion_protection": True}
    seen = data_of(await caller.patch(path, both))
    assert {field: seen[field] for field in both} == both
    assert error_of(await caller.patch(path, {}), 422, "missing_required_field")["details"] == {"field": "name"}
    for field, value in (
        ("name", None),
        ("deletion_protection", None),
        ("deletion_protection", "yes"),
        ("plan", "pro"),
    ):
        assert error_of(await caller.patch(path, {field: value}), 422, "invalid_field")["details"] == {"field": field}


MOMENTS = [
    "2099-13-01T00:00:00Z",
    "tomorrow",
    7,
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    ahead(timedelta(days=3660)),
    ahead(timedelta(minutes=4)),
    (datetime.now(UTC) + FAR).replace(tzinfo=None).isoformat(),
    ahead(FAR)[:10],
    "",
]


# The processes that run the tests have to find them under the same names, whatever the time is.
@together("moment", MOMENTS, ids=map(str, range(len(MOMENTS))))
async def test_a_moment_that_cannot_be(shared: LoneApi, asking: Caller, moment: Any) -> None:
    for asked in (
        await asking.create(expires_at=moment),
        await asking.patch(f"/databases/{await made(asking)}", {"expires_at": moment}),
    ):
        assert error_of(asked, 422, "invalid_field")["details"] == {"field": "expires_at"}


async def test_it_is_shown_in_utc(shared: LoneApi, asking: Caller) -> None:
    moment = (datetime.now(UTC) + FAR).replace(microsecond=0)
    uuid = await made(asking, expires_at=moment.astimezone(timezone(timedelta(hours=5, minutes=45))).isoformat())
    assert data_of(await asking.get(f"/databases/{uuid}"))["expires_at"] == f"{moment:%Y-%m-%dT%H:%M:%SZ}"


async def test_not_both(lone: LoneApi) -> None:
    caller = await lone.caller()
    both: dict[str, Any] = {"deletion_protection": True, "expires_at": ahead(FAR)}
    answer = await caller.create(**both)
    assert error_of(answer, 422, "invalid_field")["details"] == {"field": "expires_at"}
    expiring, protected = await made(caller, expires_at=ahead(FAR)), await made(caller, deletion_protection=True)
    for uuid, change, field in (
        (expiring, {"deletion_protection": True}, "deletion_protection"),
        (protected, {"expires_at": ahead(FAR)}, "expires_at"),
        (await made(caller), both, "expires_at"),
    ):
        refused = error_of(await caller.patch(f"/databases/{uuid}", change), 422, "invalid_field")
        assert refused["details"] == {"field": field}
    changed = await caller.patch(f"/databases/{expiring}", {"deletion_protection": True, "expires_at": None})
    assert data_of(changed)["deletion_protection"] is True
    changed = await caller.patch(f"/databases/{protected}", {"deletion_protection": False, "expires_at": ahead(FAR)})
    assert data_of(changed)["deletion_protection"] is False


async def test_a_repeated_create_gets_its_answer_though_the_moment_is_near_by_now(lone: LoneApi) -> None:
    caller, key = await lone.caller(), str(uuid4())
    moment = ahead(timedelta(hours=2))
    uuid = data_of(await caller.create(expires_at=moment, key=key), 202)["uuid"]
    assert data_of(await caller.create(expires_at=moment, key=key), 202)["uuid"] == uuid


async def test_a_member_of_the_pool_takes_either(pool: LonePool) -> None:
    caller, host = await pool.api.caller(), await pool.api.add_host()
    await pool.add_members(2, host, connections=10, remote_since=None)
    protected = data_of(await caller.create(deletion_protection=True), 201)
    expiring = data_of(await caller.create(expires_at=ahead(FAR)), 201)
    for shown in (protected, expiring):
        assert data_of(await caller.get(f"/databases/{shown['uuid']}")) == shown
    assert (protected["deletion_protection"], protected["expires_at"]) == (True, None)
    assert expiring["expires_at"].endswith("Z")
    error_of(await caller.delete(f"/databases/{protected['uuid']}"), 409, "deletion_protected")


async def test_it_deletes_itself_with_its_grace(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = await made(caller, expires_at=ahead(FAR))
    await end_expired(DEFAULT_PLANS, GRACE)
    assert await events_of(uuid) == ["database.provisioning_started", "database.provisioned"]
    await come(uuid)
    await end_expired(DEFAULT_PLANS, GRACE)
    assert (await events_of(uuid))[2:] == ["database.expiring", "database.deleted"]
    (shown,) = body_of(await caller.get("/deleted_databases"))["data"]
    grace = datetime.fromisoformat(shown["destroy_scheduled_at"]) - datetime.fromisoformat(shown["deleted_at"])
    assert GRACE <= grace < GRACE + timedelta(minutes=1)
    assert len(await fetch("SELECT 1 FROM workflow_starts WHERE workflow = 'DeleteDatabase'")) == 1
    (begun,) = body_of(await caller.get("/operations", params={"database_uuid": uuid, "type": "delete"}))["data"]
    assert begun["requested_by"] is None
    await end_expired(DEFAULT_PLANS, GRACE)
    assert (await events_of(uuid)).count("database.deleted") == 1


async def test_one_that_is_still_being_made_is_cancelled(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = data_of(await caller.create(expires_at=ahead(FAR)), 202)["uuid"]
    await come(uuid)
    await end_expired(DEFAULT_PLANS, GRACE)
    rows = await fetch("SELECT status, cancelled_provision_jobs AS jobs, destroy_at <= now() AS over FROM databases")
    assert tuple(rows[0]) == ("deleted", 1, True)


async def test_its_end_is_announced_once_for_each_moment(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = await made(caller, expires_at=ahead(timedelta(minutes=61)))
    path = f"/databases/{uuid}"

    async def announced() -> int:
        for _ in range(2):
            await end_expired(DEFAULT_PLANS, GRACE)
        return (await events_of(uuid)).count("database.expiring")

    assert await announced() == 0
    near = ahead(timedelta(minutes=59))
    for number, change in enumerate(
        ({"expires_at": near}, {"expires_at": ahead(timedelta(minutes=6))}, {"expires_at": ahead(FAR)}), start=1
    ):
        data_of(await caller.patch(path, change))
        data_of(await caller.patch(path, {"name": "renamed"}))
        assert await announced() == min(number, 2)
    data_of(await caller.patch(path, {"expires_at": near}))
    assert await announced() == 3
    payload = (
        "SELECT payload->'data'->>'expires_at' AS at FROM events WHERE type = 'database.expiring' ORDER BY id DESC"
    )
    assert datetime.fromisoformat((await fetch(payload))[0]["at"]) == datetime.fromisoformat(near)


async def test_a_change_that_came_first_holds(lone: LoneApi) -> None:
    """What the loop read a moment ago decides nothing."""
    caller = await lone.caller()
    kept, protected = await made(caller, expires_at=ahead(FAR)), await made(caller, expires_at=ahead(FAR))
    for uuid in (kept, protected):
        await come(uuid)
    due = await expiry.find_expired(10, without=[])
    assert {str(uuid) for uuid in due} == {kept, protected}
    data_of(await caller.patch(f"/databases/{kept}", {"expires_at": ahead(FAR)}))
    data_of(await caller.patch(f"/databases/{protected}", {"expires_at": None, "deletion_protection": True}))
    assert [await service.delete_expired(DEFAULT_PLANS, uuid, GRACE) for uuid in due] == [False, False]
    assert [await status_of(uuid) for uuid in (kept, protected)] == ["active", "active"]
    assert "database.expiring" not in await events_of(kept)


async def test_several_workers_end_it_once(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuids = [await made(caller, expires_at=ahead(FAR)) for _ in range(5)]
    for uuid in uuids:
        await come(uuid)
    await asyncio.gather(*(end_expired(DEFAULT_PLANS, GRACE) for _ in range(4)))
    for uuid in uuids:
        assert (await events_of(uuid))[2:] == ["database.expiring", "database.deleted"]


async def test_one_that_fails_holds_up_none(lone: LoneApi, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = await lone.caller()
    broken, whole = await made(caller, expires_at=ahead(FAR)), await made(caller, expires_at=ahead(FAR))
    await come(broken, timedelta(minutes=1))
    await come(whole)
    # A plan that no longer exists can't be described in an event.
    await fetch("UPDATE databases SET plan = 'gone' WHERE uuid = $1", UUID(broken))
    await end_expired(DEFAULT_PLANS, GRACE)
    assert [await status_of(uuid) for uuid in (broken, whole)] == ["active", "deleted"]


async def test_the_operators_changes_obey_the_same_rules(lone: LoneApi) -> None:
    uuid = UUID(await made(await lone.caller(), deletion_protection=True))
    with pytest.raises(InvalidField):
        await service.change_any(uuid, ChangeDatabase(expires_at=datetime.now(UTC) + FAR))


async def test_the_check_names_an_end_that_is_overdue(lone: LoneApi) -> None:
    uuid = await made(await lone.caller(), expires_at=ahead(FAR))
    await come(uuid, timedelta(hours=1))
    found = [one.rule for one in await check_records(timedelta(minutes=1)) if one.subject == uuid]
    assert found == ["expiry_stuck"]
    await end_expired(DEFAULT_PLANS, GRACE)
    assert "expiry_stuck" not in [one.rule for one in await check_records(timedelta(minutes=1))]
