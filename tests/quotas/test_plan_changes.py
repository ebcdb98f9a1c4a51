"""A plan that is otherwise than when a database was made: its connection limit follows, one of its own stays."""

from uuid import UUID

import msgspec

from app.databases.limits import follow_plans
from app.quotas.plans import DEFAULT_PLANS, Plans
from app.store.session import fetch
from tests.support.in_process import LoneApi
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
    launch = DEFAULT_PLANS.by_name["launch"]
    limits = msgspec.structs.replace(launch.limits, connection_hard_limit=20)
    changed = Plans(
        by_name={**DEFAULT_PLANS.by_name, "launch": msgspec.structs.replace(launch, limits=limits)},
        tiers=DEFAULT_PLANS.tiers,
    )
    assert await follow_plans(changed) == 1
    assert [await _connections(uuid) for uuid in (plain, own, other)] == [20, 7, 200]
    assert f"apply-limits/{plain}/1" in await pending_ids()
    assert await follow_plans(changed) == 0
