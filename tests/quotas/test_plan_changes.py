"""A plan that is otherwise than when a database was made: its connection limit follows, one of its own stays."""

from dataclasses import replace
from pathlib import Path
from uuid import UUID

import msgspec

from app.core.ids import new_uuid
from app.credentials import users
from app.credentials.users import NewDatabaseUser
from app.engines.base import Access
from app.provisioning.plan_changes import follow_plans
from app.quotas.file import load_plans
from app.quotas.plans import DEFAULT_PLANS, Plans
from app.store.session import fetch, fetch_scalar
from tests.support.answers import data_of
from tests.support.in_process import LoneApi, lone_api
from tests.support.moves import make_active
from tests.support.pending_starts import pending_ids


async def _connections(uuid: str) -> int:
    rows = await fetch("SELECT connections FROM databases WHERE uuid = $1", UUID(uuid))
    return int(rows[0]["connections"])


async def test_it_follows_once_and_leaves_overrides_alone(lone: LoneApi) -> None:
    caller = await lone.caller()
    plain = (await caller.create(plan="launch")).json()["data"]["uuid"]
    own = (await caller.create(plan="launch", connection_hard_limit=7)).json()["data"]["uuid"]
    other = (await caller.create(plan="grow")).json()["data"]["uuid"]
    for uuid in (plain, own, other):
        await make_active(uuid)
    assert await follow_plans(DEFAULT_PLANS) == 0
    changed = _with_launch_connections(20)
    assert await follow_plans(changed) == 1
    assert [await _connections(uuid) for uuid in (plain, own, other)] == [20, 7, 200]
    assert f"apply-limits/{plain}/1" in await pending_ids()
    assert await follow_plans(changed) == 0


def _with_launch_connections(connections: int) -> Plans:
    launch = DEFAULT_PLANS.by_name["launch"]
    limits = msgspec.structs.replace(launch.limits, connection_hard_limit=connections)
    return Plans(
        by_name={**DEFAULT_PLANS.by_name, "launch": msgspec.structs.replace(launch, limits=limits)},
        tiers=DEFAULT_PLANS.tiers,
    )


async def test_no_host_allocates_more_than_it_has(lone: LoneApi) -> None:
    """Those for which there is no room stay as they are, and follow when there is."""
    caller = await lone.caller()
    made = [data_of(await caller.create(plan="launch"), 202)["uuid"] for _ in range(3)]
    for uuid in made:
        await make_active(uuid)
    changed = _with_launch_connections(60)
    await fetch("UPDATE engine_hosts SET connection_capacity = 165")
    assert await follow_plans(changed) == 1
    assert sorted([await _connections(uuid) for uuid in made]) == [50, 50, 60]
    assert await follow_plans(changed) == 0
    assert len([one for one in await pending_ids() if one.startswith("apply-limits/")]) == 1
    await fetch("UPDATE engine_hosts SET connection_capacity = 180")
    assert await follow_plans(changed) == 2


async def test_limits_are_what_users_keep_of_a_plan_that_gets_smaller(lone: LoneApi, tmp_path: Path) -> None:
    caller = await lone.caller()
    uuid = data_of(await caller.create(plan="launch"), 202)["uuid"]
    await make_active(uuid)
    await _add_user(uuid, connections=30)
    file = tmp_path / "plans.toml"
    file.write_text("[launch]\nstorage_gb = 5\nconnections = 20\nwarning_pct = 70\n")
    async with lone_api(lone.control_dsn, plans_file=file, limits_timeout_seconds=0.1) as other:
        asking = replace(caller, http=other.http)
        [before] = data_of(await asking.get("/databases"))
        assert before["limits"] == {
            "storage_hard_limit_gb": 5,
            "connection_hard_limit": 50,
            "warning_threshold_pct": 70,
        }
        assert await follow_plans(load_plans(file)) == 1
        [after] = data_of(await asking.get("/databases"))
        assert after["limits"] == before["limits"] | {"connection_hard_limit": 31}
        assert after["quotas"]["connection_hard_limit"] is None
        await asking.patch(f"/databases/{uuid}/quotas", {"warning_threshold_pct": 90})
        [warned] = data_of(await asking.get("/databases"))
        assert warned["limits"] == after["limits"] | {"warning_threshold_pct": 90}, "what wasn't asked for stays"
    assert await _connections(uuid) == 31


async def _add_user(uuid: str, *, connections: int) -> None:
    await users.insert(
        NewDatabaseUser(
            uuid=new_uuid(),
            database_id=await fetch_scalar(int, "SELECT id FROM databases WHERE uuid = $1", UUID(uuid)),
            name="app",
            login_name="app",
            access=Access.READ_WRITE,
            connection_limit=connections,
            password_sealed=b"",
            expires_at=None,
        )
    )
