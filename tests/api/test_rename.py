"""`PATCH /databases/{uuid}`. Interface specification, section 4.7."""

from datetime import datetime

from tests.support.answers import data_of
from tests.support.in_process import LoneApi
from tests.support.moves import events_of, make_active


async def test_only_the_name_changes(lone: LoneApi) -> None:
    caller = await lone.caller()
    made = data_of(await caller.create("before"), 202)
    await make_active(made["uuid"])
    before = data_of(await caller.get(f"/databases/{made['uuid']}"))
    renamed = data_of(await caller.patch(f"/databases/{made['uuid']}", {"name": "after"}))
    after = data_of(await caller.get(f"/databases/{made['uuid']}"))
    assert renamed["name"] == after["name"] == "after"
    assert datetime.fromisoformat(after["updated_at"]) > datetime.fromisoformat(before["updated_at"])
    changed = {"name", "updated_at"}
    assert {k: v for k, v in before.items() if k not in changed} == {k: v for k, v in after.items() if k not in changed}


async def test_a_database_that_is_still_provisioning_can_be_renamed(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = data_of(await caller.create("before"), 202)["uuid"]
    assert data_of(await caller.patch(f"/databases/{uuid}", {"name": "after"}))["status"] == "provisioning"


async def test_a_rename_is_no_event(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuid = data_of(await caller.create("before"), 202)["uuid"]
    await caller.patch(f"/databases/{uuid}", {"name": "after"})
    assert await events_of(uuid) == ["database.provisioning_started"]
