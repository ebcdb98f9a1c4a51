"""A plan that is otherwise than when a database was made: its connection limit follows, one of its own stays."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import msgspec
import pytest

from app.databases.limits import follow_plans
from app.quotas.plans import PLANS
from app.store.session import fetch
from tests.support.in_process import LoneApi
from tests.support.moves import make_active
from tests.support.pending_starts import pending_ids


@pytest.fixture
def plans() -> Iterator[dict[str, Any]]:
    before = dict(PLANS)
    yield PLANS
    PLANS.update(before)


async def _connections(uuid: str) -> int:
    rows = await fetch("SELECT connections FROM databases WHERE uuid = $1", UUID(uuid))
    return int(rows[0]["connections"])


async def test_it_follows_once_and_leaves_overrides_alone(lone: LoneApi, plans: dict[str, Any]) -> None:
    caller = await lone.caller()
    plain = (await caller.create(plan="launch")).json()["data"]["uuid"]
    own = (await caller.create(plan="launch", connection_hard_limit=7)).json()["data"]["uuid"]
    other = (await caller.create(plan="grow")).json()["data"]["uuid"]
    for uuid in (plain, own, other):
        await make_active(uuid)
    assert await follow_plans() == 0
    limits = msgspec.structs.replace(plans["launch"].limits, connection_hard_limit=20)
    plans["launch"] = msgspec.structs.replace(plans["launch"], limits=limits)
    assert await follow_plans() == 1
    assert [await _connections(uuid) for uuid in (plain, own, other)] == [20, 7, 200]
    assert f"apply-limits/{plain}/1" in await pending_ids()
    assert await follow_plans() == 0
