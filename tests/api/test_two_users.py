"""Nobody sees or touches another's databases, by any endpoint; and nobody learns that they are there."""

from typing import Any
from uuid import uuid4

from app.store.session import fetch
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi


async def attempts(caller: Caller, uuid: str) -> list[dict[str, Any]]:
    answers = [
        await caller.get(f"/databases/{uuid}"),
        await caller.patch(f"/databases/{uuid}", {"name": "taken"}),
        await caller.patch(f"/databases/{uuid}/quotas", {"warning_threshold_pct": 1}),
        await caller.delete(f"/databases/{uuid}"),
    ]
    return [error_of(answer, 404, "not_found") for answer in answers]


async def test_anothers_database_is_as_if_it_were_not(lone: LoneApi) -> None:
    owner, stranger = await lone.caller(), await lone.caller()
    made = data_of(await owner.create(), 202)
    before = await fetch("SELECT d::text FROM databases d")
    assert await attempts(stranger, made["uuid"]) == await attempts(stranger, str(uuid4()))
    assert body_of(await stranger.get("/databases"))["data"] == []
    assert await fetch("SELECT d::text FROM databases d") == before
    assert data_of(await owner.get(f"/databases/{made['uuid']}"))["db_password"] == made["db_password"]


async def test_a_deleted_database_is_as_if_it_were_not(lone: LoneApi) -> None:
    owner = await lone.caller()
    made = data_of(await owner.create(), 202)
    await fetch("UPDATE databases SET status = 'deleted'")
    await attempts(owner, made["uuid"])


async def test_members_of_one_team_share_its_databases(lone: LoneApi) -> None:
    one, other = await lone.caller(), await lone.caller()
    made = data_of(await one.create(), 202)
    await fetch("INSERT INTO memberships (user_id, team_id) VALUES ($1, $2)", other.user_id, one.team_id)
    assert data_of(await other.get(f"/databases/{made['uuid']}")) == data_of(
        await one.get(f"/databases/{made['uuid']}")
    )
    assert data_of(await other.patch(f"/databases/{made['uuid']}", {"name": "ours"}))["name"] == "ours"
