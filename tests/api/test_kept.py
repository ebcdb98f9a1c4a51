"""What a team holds of databases that it deleted is bounded, on the API alone: nothing is ever destroyed here."""

from datetime import datetime, timedelta, tzinfo
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.core import clock
from app.core.errors import DatabaseDestroyed
from app.provisioning.undeletion import undelete
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.copies import Copies
from tests.support.in_process import LoneApi, lone_api
from tests.support.meeting import meet
from tests.support.moves import make_active

BOUND = DEFAULT_PLANS.tiers["free"].deleted_databases
KEPT = "SELECT uuid FROM databases WHERE team_id = $1 AND status = 'deleted' AND destroy_at > now() ORDER BY id"
HELD = "SELECT count(*) FROM databases WHERE team_id = $1 AND destroyed_at IS NULL"

COMPLETED = """
INSERT INTO backups
    (uuid, team_id, database_id, database_uuid, database_name, engine, region, plan, quotas, kind, status, priority)
SELECT gen_random_uuid(), team_id, id, uuid, name, engine, region, plan, '{}', 'manual', 'completed', 1 FROM databases
WHERE uuid = $1
"""


async def active(caller: Caller, **fields: Any) -> str:
    """One that its team has; on no host, so that a DELETE waits for nobody."""
    uuid: str = data_of(await caller.create(**fields), 202)["uuid"]
    await make_active(uuid)
    await fetch("UPDATE databases SET remote_since = NULL WHERE uuid = $1", UUID(uuid))
    return uuid


async def delete(caller: Caller, uuid: str) -> None:
    body_of(await caller.delete(f"/databases/{uuid}"))


async def kept(caller: Caller) -> list[str]:
    return [str(row["uuid"]) for row in await fetch(KEPT, caller.team_id)]


def refused(answer: httpx.Response) -> dict[str, Any]:
    assert answer.headers["Retry-After"].isdigit()
    details: dict[str, Any] = error_of(answer, 429, "deletions_pending")["details"]
    return details


async def test_beyond_the_bound_the_oldest_goes_and_its_workflow_is_woken(lone: LoneApi) -> None:
    caller = await lone.caller(tier="free")
    deleted = []
    for _ in range(BOUND + 1):
        deleted.append(await active(caller))
        await delete(caller, deleted[-1])
    assert await kept(caller) == deleted[1:]
    woken = await fetch("SELECT workflow_id, signal FROM workflow_starts WHERE signal IS NOT NULL")
    assert [tuple(row) for row in woken] == [(f"delete-database/{deleted[0]}", "look_again")]


async def test_a_loop_of_creates_and_deletes_holds_one_and_its_bound(lone: LoneApi) -> None:
    caller = await lone.caller(tier="free")
    for _ in range(BOUND + 1):
        await delete(caller, await active(caller))
    for _ in range(3):
        assert refused(await caller.create()) == {"deleted_databases": BOUND + 1, "limit": BOUND}
        assert (await fetch(HELD, caller.team_id))[0]["count"] == BOUND + 1
    await fetch("UPDATE databases SET destroyed_at = now() WHERE destroy_at <= now()")
    await active(caller)


async def test_creates_that_are_cancelled_count_until_nothing_is_left_of_them(lone: LoneApi) -> None:
    caller = await lone.caller(tier="free")
    for _ in range(BOUND + 1):
        await delete(caller, data_of(await caller.create(), 202)["uuid"])
    assert refused(await caller.create())["deleted_databases"] == BOUND + 1
    await fetch("UPDATE databases SET destroyed_at = now()")
    data_of(await caller.create(), 202)


async def test_many_deletes_at_once_keep_just_as_many(lone: LoneApi) -> None:
    caller = await lone.caller()
    made = [await active(caller) for _ in range(BOUND + 4)]
    await fetch("UPDATE teams SET tier = 'free'")
    answers = await meet(lone.control_dsn, "databases", (caller.delete(f"/databases/{uuid}") for uuid in made))
    assert [answer.status_code for answer in answers] == [200] * len(made)
    assert len(await kept(caller)) == BOUND


async def test_storage_counts_and_the_last_is_kept_whatever_its_size(lone: LoneApi) -> None:
    caller = await lone.caller()
    made = [await active(caller) for _ in range(3)]
    gigabytes = DEFAULT_PLANS.tiers["pro"].deleted_storage_gb
    for uuid, share in zip(made, (0.1, 0.8, 0.7), strict=True):
        await fetch(
            "INSERT INTO database_usage (database_id, measured_at, storage_bytes, connected, runtime_month)"
            " SELECT id, now(), $2, false, current_date FROM databases WHERE uuid = $1",
            UUID(uuid),
            int(share * gigabytes * 2**30),
        )
    await delete(caller, made[0])
    await delete(caller, made[1])
    assert await kept(caller) == made[:2]
    await delete(caller, made[2])
    assert await kept(caller) == made[2:]
    assert refused(await caller.create())["deleted_databases"] == 3
    await fetch("UPDATE databases SET destroyed_at = now() WHERE destroy_at <= now()")
    await fetch("UPDATE database_usage SET storage_bytes = storage_bytes * 100")
    await delete(caller, await active(caller))
    assert len(await kept(caller)) == 1, "the one that was deleted last"


async def test_another_team_is_not_concerned(lone: LoneApi) -> None:
    first, second = await lone.caller(tier="free"), await lone.caller(tier="free")
    for caller in (first, second):
        for _ in range(BOUND):
            await delete(caller, await active(caller))
    assert [len(await kept(caller)) for caller in (first, second)] == [BOUND, BOUND]


async def test_one_that_never_became_active_takes_no_others_place(lone: LoneApi) -> None:
    """It goes at once: neither is it one of those that are kept, nor the one that was deleted last."""
    caller = await lone.caller(tier="free")
    deleted = []
    for _ in range(BOUND):
        deleted.append(await active(caller))
        await delete(caller, deleted[-1])
    await delete(caller, data_of(await caller.create(), 202)["uuid"])
    assert await kept(caller) == deleted


@pytest.mark.parametrize("off", [timedelta(days=-2), timedelta(days=2)])
async def test_a_process_whose_clock_is_wrong(lone: LoneApi, monkeypatch: pytest.MonkeyPatch, off: timedelta) -> None:
    """Our own database's clock decides, so it says when."""

    class Wrong(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + off

    caller = await lone.caller()
    uuid, cancelled = await active(caller), data_of(await caller.create(), 202)["uuid"]
    monkeypatch.setattr(clock, "datetime", Wrong)
    for one in (uuid, cancelled):
        await delete(caller, one)
    rows = await fetch("SELECT uuid, extract(epoch FROM destroy_at - deleted_at)::float8 AS grace FROM databases")
    grace = {str(row["uuid"]): row["grace"] for row in rows}
    assert 86_400 <= grace[uuid] < 86_400 + 3600
    assert 0 <= grace[cancelled] < 3600
    with pytest.raises(DatabaseDestroyed):
        await undelete(DEFAULT_PLANS, UUID(cancelled))


async def test_making_and_deleting_teams_is_no_way_round(copies: Copies) -> None:
    async with copies.lent() as dsn, lone_api(dsn, teams_per_user=2) as api:
        await api.add_host()
        caller = await api.caller()
        for _ in range(2):
            team = data_of(await caller.post("/teams", {"name": "short-lived"}), 201)["id"]
            uuid = await active(caller, team_id=team)
            await delete(caller, uuid)
            body_of(await caller.delete(f"/teams/{team}"))
            error_of(await caller.post("/teams", {"name": "next"}), 422, "teams_limit_reached")
            await fetch("UPDATE databases SET destroyed_at = now() WHERE uuid = $1", UUID(uuid))
        await fetch(COMPLETED, UUID(uuid))
        error_of(await caller.post("/teams", {"name": "next"}), 422, "teams_limit_reached")
        await fetch("UPDATE backups SET status = 'deleted'")
        data_of(await caller.post("/teams", {"name": "next"}), 201)
