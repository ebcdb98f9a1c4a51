"""`/teams`, their members and invitations: who may do what, once, and what ends when somebody leaves."""

import asyncio
import json
from dataclasses import replace
from time import monotonic
from typing import Any
from uuid import uuid4

import asyncpg
import httpx
import pytest

from app.auth.keys import create_key
from app.auth.standing import LONG_SECONDS
from app.store.session import fetch
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.client import ALL_SCOPES, UNHURRIED, Caller
from tests.support.copies import Copies
from tests.support.in_process import LoneApi, lone_api
from tests.support.lone_pool import LonePool
from tests.support.meeting import row_lock, rows_held, waiters
from tests.support.moves import make_active
from tests.support.together import together
from tests.support.waiting import until


async def another_key(caller: Caller) -> Caller:
    """A new one of the same user, as an operator makes it."""
    made = await create_key(user_id=caller.user_id, name="another", scopes=ALL_SCOPES, controls=UNHURRIED)
    return replace(caller, api_key=made.api_key, key_id=made.id)


async def minted(caller: Caller, **fields: Any) -> Caller:
    body = body_of(await caller.post("/api_keys", {"name": "made", "permissions": [*ALL_SCOPES], **fields}), 201)
    return replace(caller, api_key=body["api_key"], key_id=body["data"]["id"])


async def team_of(owner: Caller, name: str = "Orders") -> int:
    return int(data_of(await owner.post("/teams", {"name": name}), 201)["id"])


async def invited(by: Caller, team: int, role: str = "member") -> str:
    return str(body_of(await by.post(f"/teams/{team}/invitations", {"role": role}), 201)["token"])


async def accept(caller: Caller, token: str, **options: Any) -> httpx.Response:
    return await caller.post("/invitation_acceptances", {"token": token}, **options)


async def joined(by: Caller, team: int, who: Caller, role: str = "member") -> None:
    assert data_of(await accept(who, await invited(by, team, role)), 201)["role"] == role


def member(team: int, who: Caller) -> str:
    return f"/teams/{team}/members/{who.user_id}"


async def test_a_team_from_its_beginning_to_its_end(shared: LoneApi) -> None:
    owner = await shared.caller()
    answer = await owner.post("/teams", {"name": "Orders"}, key="made")
    made = data_of(answer, 201)
    assert {name: made[name] for name in ("object", "name", "tier", "role")} == {
        "object": "team",
        "name": "Orders",
        "tier": "free",
        "role": "owner",
    }
    again = body_of(await owner.post("/teams", {"name": "Orders"}, key="made"), 201)
    assert (again["data"]["id"], again["idempotency_replay"]) == (made["id"], True)
    path = f"/teams/{made['id']}"
    assert data_of(await owner.get(path)) == made
    listed = data_of(await owner.get("/teams"))
    assert [one["id"] for one in listed] == [made["id"], owner.team_id]
    assert data_of(await owner.get("/teams", params={"starting_after": made["id"]})) == listed[1:]
    assert field_of(await owner.get("/teams", params={"starting_after": 999_999})) == "starting_after"
    assert data_of(await owner.patch(path, {"name": "Invoices"}))["name"] == "Invoices"
    assert field_of(await owner.patch(path, {"name": " "})) == "name"
    stranger = await shared.caller()
    for answer in (await stranger.get(path), await stranger.delete(path), await stranger.patch(path, {"name": "a"})):
        error_of(answer, 404, "not_found")
    bound = await minted(owner, team_id=made["id"])
    assert data_of(await owner.delete(path)) == {"object": "team", "id": made["id"], "deleted": True}
    error_of(await owner.get(path), 404, "not_found")
    error_of(await owner.delete(path), 404, "not_found")
    assert [one["id"] for one in data_of(await owner.get("/teams"))] == [owner.team_id]
    error_of(await bound.get("/me"), 403, "not_a_member")


async def test_a_team_with_databases_stays(shared: LoneApi) -> None:
    owner = await shared.caller()
    path = f"/teams/{owner.team_id}"
    uuid = data_of(await owner.create(), 202)["uuid"]
    assert error_of(await owner.delete(path), 409, "team_has_databases")["details"] == {"databases": 1}
    await fetch("UPDATE databases SET status = 'deleted' WHERE uuid = $1", uuid)
    data_of(await owner.delete(path))
    rows = await fetch("SELECT team_id FROM databases WHERE uuid = $1", uuid)
    assert rows[0]["team_id"] == owner.team_id, "what is left to be destroyed still knows whose it was"


async def test_nothing_becomes_a_teams_that_ends(shared: LoneApi) -> None:
    await shared.warm_up()
    for number in range(6):
        owner = await shared.caller(tier="pro" if number % 2 else "free")
        made, ended = await asyncio.gather(owner.create(), owner.delete(f"/teams/{owner.team_id}"))
        live = await fetch("SELECT 1 FROM databases WHERE team_id = $1 AND status <> 'deleted'", owner.team_id)
        if ended.is_success:
            error_of(made, 403, "not_a_member")
            assert not live
        else:
            error_of(ended, 409, "team_has_databases")
            data_of(made, 202)
            assert len(live) == 1


async def test_no_member_of_the_pool_becomes_a_teams_that_ends(pool: LonePool) -> None:
    """A create that comes while the team is being deleted waits for what becomes of that."""
    caller = await pool.api.caller()
    await pool.add_members(1, await pool.api.add_host())
    other = await asyncpg.connect(pool.api.control_dsn)
    try:
        async with other.transaction():
            await other.fetch("SELECT 1 FROM teams WHERE id = $1 FOR UPDATE", caller.team_id)
            made = asyncio.ensure_future(caller.create())
            waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            while not await fetch(waiting):
                assert not made.done()
            await other.execute("UPDATE teams SET deleted_at = now() WHERE id = $1", caller.team_id)
    finally:
        await other.close()
    error_of(await made, 403, "not_a_member")
    assert not await fetch("SELECT 1 FROM databases WHERE team_id = $1", caller.team_id)


async def test_an_invitation_works_once(shared: LoneApi) -> None:
    owner, first, second = [await shared.caller() for _ in range(3)]
    team = await team_of(owner)
    answer = await owner.post(f"/teams/{team}/invitations", {"role": "admin"}, key="asked")
    body = body_of(answer, 201)
    token = body["token"]
    assert body["link"].endswith(f"#{token}")
    assert (body["data"]["status"], body["data"]["role"], body["data"]["invited_by"]) == (
        "open",
        "admin",
        owner.user_id,
    )
    again = body_of(await owner.post(f"/teams/{team}/invitations", {"role": "admin"}, key="asked"), 201)
    assert (again["token"], again["idempotency_replay"]) == (token, True)
    other = await another_key(owner)
    answer = await other.post(f"/teams/{team}/invitations", {"role": "admin"}, key="asked")
    error_of(answer, 409, "idempotency_key_conflict")
    rows = await fetch("SELECT i::text FROM invitations i WHERE team_id = $1", team)
    assert token not in rows[0][0]
    assert token not in (await owner.get(f"/teams/{team}/invitations")).text
    answers = await asyncio.gather(accept(first, token), accept(second, token))
    assert sorted(one.status_code for one in answers) == [201, 409]
    winner, loser = (first, second) if answers[0].status_code == 201 else (second, first)
    joined_as = data_of(next(one for one in answers if one.status_code == 201), 201)
    assert (joined_as["user_id"], joined_as["role"], joined_as["team_id"]) == (winner.user_id, "admin", team)
    assert error_of(await accept(loser, token), 409, "invitation_ended")["details"] == {"status": "accepted"}
    listed = data_of(await owner.get(f"/teams/{team}/invitations"))
    assert [(one["status"], one["accepted_by"]) for one in listed] == [("accepted", winner.user_id)]
    error_of(await owner.delete(f"/teams/{team}/invitations/{listed[0]['id']}"), 409, "invitation_ended")


async def test_invitations_that_are_over(shared: LoneApi) -> None:
    owner, guest = await shared.caller(), await shared.caller()
    team = await team_of(owner)
    expired, withdrawn = await invited(owner, team), await invited(owner, team)
    newest, oldest = data_of(await owner.get(f"/teams/{team}/invitations"))
    await fetch("UPDATE invitations SET expires_at = now() WHERE id = $1", oldest["id"])
    assert error_of(await accept(guest, expired), 409, "invitation_ended")["details"] == {"status": "expired"}
    path = f"/teams/{team}/invitations/{newest['id']}"
    stranger = await shared.caller()
    error_of(await stranger.delete(path), 404, "not_found")
    assert data_of(await owner.delete(path))["withdrawn"] is True
    for unknown in (withdrawn, "inv_unknown", "x" * 128):
        error_of(await accept(guest, unknown), 404, "not_found")
    assert field_of(await accept(guest, "x" * 129)) == "token"
    assert [one["status"] for one in data_of(await owner.get(f"/teams/{team}/invitations"))] == ["expired"]


async def test_somebody_in_no_team_accepts(shared: LoneApi) -> None:
    owner, guest = await shared.caller(), await shared.caller()
    await fetch("DELETE FROM memberships WHERE user_id = $1", guest.user_id)
    error_of(await guest.get("/databases"), 403, "not_a_member")
    assert data_of(await guest.get("/me"))["teams"] == []
    assert data_of(await guest.get("/teams")) == []
    await joined(owner, owner.team_id, guest)
    assert data_of(await guest.get("/me"))["teams"] == [{"id": owner.team_id, "name": "Test User", "role": "member"}]
    data_of(await guest.create(), 202)


async def test_nobody_gives_a_role_above_their_own(shared: LoneApi) -> None:
    owner, admin, plain = [await shared.caller() for _ in range(3)]
    team = owner.team_id
    await joined(owner, team, admin, "admin")
    await joined(owner, team, plain, "member")
    details = error_of(await admin.post(f"/teams/{team}/invitations", {"role": "owner"}), 403, "insufficient_role")
    assert details["details"] == {"role": "admin", "required": ["owner"], "team_id": team}
    for path, role in ((member(team, plain), "owner"), (member(team, owner), "member")):
        error_of(await admin.patch(path, {"role": role}), 403, "insufficient_role")
    error_of(await admin.delete(member(team, owner)), 403, "insufficient_role")
    error_of(await admin.patch(f"/teams/{team}", {"name": "a"}), 403, "insufficient_role")
    error_of(await admin.delete(f"/teams/{team}"), 403, "insufficient_role")
    for answer in (
        await plain.post(f"/teams/{team}/invitations", {"role": "viewer"}),
        await plain.patch(member(team, plain), {"role": "admin"}),
        await plain.delete(member(team, admin)),
    ):
        error_of(answer, 403, "insufficient_role")
    assert data_of(await admin.patch(member(team, plain), {"role": "admin"}))["role"] == "admin"
    assert data_of(await owner.patch(member(team, plain), {"role": "owner"}))["role"] == "owner"
    answer = await owner.patch(member(team, admin), {"role": "boss"})
    assert field_of(answer) == "role"
    assert "viewer, member, admin, owner" in answer.json()["error"]["message"]


async def test_a_demotion_takes_what_was_still_open(shared: LoneApi) -> None:
    owner, admin, guest = [await shared.caller() for _ in range(3)]
    team = owner.team_id
    await joined(owner, team, admin, "owner")
    as_owner, as_admin = await invited(admin, team, "owner"), await invited(admin, team, "admin")
    data_of(await owner.patch(member(team, admin), {"role": "admin"}))
    error_of(await accept(guest, as_owner), 404, "not_found")
    data_of(await owner.delete(member(team, admin)))
    error_of(await accept(guest, as_admin), 404, "not_found")


async def test_the_last_owner_stays(shared: LoneApi) -> None:
    await shared.warm_up()
    one, other = await shared.caller(), await shared.caller()
    team = one.team_id
    for answer in (await one.delete(member(team, one)), await one.patch(member(team, one), {"role": "admin"})):
        error_of(answer, 409, "last_owner")
    for _ in range(4):
        await fetch("DELETE FROM memberships WHERE team_id = $1", team)
        await fetch(
            "INSERT INTO memberships (team_id, user_id, role) VALUES ($1, $2, 'owner'), ($1, $3, 'owner')",
            team,
            one.user_id,
            other.user_id,
        )
        answers = await asyncio.gather(
            one.delete(member(team, one)), other.patch(member(team, other), {"role": "viewer"})
        )
        assert sorted(answer.status_code for answer in answers) == [200, 409]
        owners = await fetch("SELECT count(*) FROM memberships WHERE team_id = $1 AND role = 'owner'", team)
        assert owners[0][0] == 1
        one, other = await another_key(one), await another_key(other)


async def test_leaving_ends_what_ones_keys_could_do_there(shared: LoneApi) -> None:
    owner, guest = await shared.caller(), await shared.caller()
    team, home = owner.team_id, guest.team_id
    await joined(owner, team, guest)
    bound, wide = await minted(guest, team_id=team), await minted(guest)
    at_home = await minted(guest, team_id=home)
    uuid = data_of(await owner.create("seen"), 202)["uuid"]
    made = body_of(await guest.create("made", team_id=team, key="before"), 202)["data"]
    for key in (guest, bound, wide):
        data_of(await key.get(f"/databases/{uuid}"))
    data_of(await guest.delete(member(team, guest)))
    assert error_of(await bound.get("/me"), 403, "not_a_member")["details"] == {"team_id": team}
    for key in (guest, wide):
        error_of(await key.get(f"/databases/{uuid}"), 403, "not_a_member")
        error_of(await key.patch(f"/databases/{uuid}", {"name": "a"}), 403, "not_a_member")
        error_of(await key.create("a", team_id=team), 403, "not_a_member")
        error_of(await key.get(f"/teams/{team}"), 403, "not_a_member")
        error_of(await key.get(f"/databases/{uuid4()}"), 404, "not_found")
        assert data_of(await key.get("/databases")) == []
    replayed = await guest.create("made", team_id=team, key="before")
    assert made["db_password"] not in replayed.text
    assert data_of(await guest.get(f"/api_keys/{wide.key_id}"))["ended_teams"] == [team]
    # Who comes back brings new keys.
    await joined(owner, team, guest, "admin")
    error_of(await bound.get("/me"), 403, "not_a_member")
    error_of(await guest.get(f"/databases/{uuid}"), 403, "not_a_member")
    fresh = await another_key(guest)
    data_of(await fresh.get(f"/databases/{uuid}"))
    for old in (guest, wide):
        made_by_old = await minted(old)
        error_of(await made_by_old.get(f"/databases/{uuid}"), 403, "not_a_member")
        error_of(await old.post(f"/api_keys/{fresh.key_id}/rotations", {}), 404, "not_found")
        error_of(await old.delete(f"/api_keys/{fresh.key_id}"), 404, "not_found")
        error_of(await old.patch(f"/api_keys/{at_home.key_id}", {"team_id": None}), 403, "exceeds_own_key")
        error_of(
            await old.post("/api_keys", {"name": "a", "permissions": ["keys:read"], "team_id": team}),
            403,
            "not_a_member",
        )
    assert data_of(await guest.create("home"), 202)["team_id"] == home


async def test_an_answer_is_not_repeated_to_who_has_left(shared: LoneApi) -> None:
    owner, guest = await shared.caller(), await shared.caller()
    await joined(owner, owner.team_id, guest)
    await joined(guest, guest.team_id, owner, "owner")
    made = data_of(await guest.create("made", key="before"), 202)
    assert made["team_id"] == guest.team_id
    data_of(await guest.delete(member(guest.team_id, guest)))
    error_of(await guest.create("made", key="before"), 409, "idempotency_key_conflict")


async def test_a_role_holds_from_the_next_request_on(shared: LoneApi) -> None:
    owner, guest = await shared.caller(), await shared.caller()
    team = owner.team_id
    await joined(owner, team, guest)
    uuid = data_of(await guest.create("a", team_id=team), 202)["uuid"]
    data_of(await owner.patch(member(team, guest), {"role": "viewer"}))
    error_of(await guest.patch(f"/databases/{uuid}", {"name": "b"}), 403, "insufficient_role")
    assert "db_password" not in data_of(await guest.get(f"/databases/{uuid}"))
    bound = {"name": "a", "permissions": ["databases:read"], "team_id": team}
    error_of(await guest.post("/api_keys", bound), 403, "insufficient_role")
    data_of(await guest.post("/api_keys", {"name": "a", "permissions": ["databases:read"]}), 201)
    data_of(await owner.patch(member(team, guest), {"role": "member"}))
    data_of(await guest.patch(f"/databases/{uuid}", {"name": "b"}))


async def test_a_long_answer_is_given_to_who_is_still_in_the_team(shared: LoneApi) -> None:
    owner, guest = await shared.caller(), await shared.caller()
    team = owner.team_id
    await joined(owner, team, guest)
    waiting = {"wait": "true", "timeout": "120"}
    body = {"name": "awaited", "team_id": team}
    made = asyncio.ensure_future(guest.post("/databases", body, params=waiting))
    while not (listed := data_of(await owner.get("/operations"))):
        assert not made.done()
    operation = asyncio.ensure_future(guest.get(f"/operations/{listed[0]['uuid']}", params=waiting))
    asked = "SELECT window_count FROM api_key_usage WHERE key_id = $1"
    while (await fetch(asked, guest.key_id))[0][0] < 3:
        assert not made.done()
    begun = monotonic()
    data_of(await owner.delete(member(team, guest)))
    await until(lambda: monotonic() - begun > LONG_SECONDS + 0.2)
    assert not made.done()
    assert not operation.done()
    await make_active(listed[0]["database_uuid"])
    for answer in await asyncio.gather(made, operation):
        error_of(answer, 403, "not_a_member")


async def test_who_adds_whom(shared: LoneApi) -> None:
    owner, known, stranger = [await shared.caller() for _ in range(3)]
    await joined(owner, owner.team_id, known)
    team = await team_of(owner)
    email = (await fetch("SELECT email FROM users WHERE id = $1", stranger.user_id))[0]["email"]
    path = f"/teams/{team}/members"
    assert field_of(await owner.post(path, {"user_id": stranger.user_id, "role": "member"})) == "user_id"
    assert field_of(await owner.post(path, {"email": email, "role": "member"})) == "email"
    assert field_of(await owner.post(path, {"role": "member"})) == "user_id"
    assert field_of(await owner.post(path, {"user_id": 1, "email": email, "role": "member"})) == "user_id"
    added = data_of(await owner.post(path, {"user_id": known.user_id, "role": "viewer"}), 201)
    assert (added["object"], added["role"]) == ("team_member", "viewer")
    error_of(await owner.post(path, {"user_id": known.user_id, "role": "viewer"}), 409, "already_a_member")
    error_of(await accept(known, await invited(owner, team)), 409, "already_a_member")
    listed = data_of(await known.get(path))
    assert [one["user_id"] for one in listed] == [known.user_id, owner.user_id]
    assert data_of(await known.get(path, params={"starting_after": known.user_id})) == listed[1:]
    assert data_of(await known.get(member(team, owner))) == listed[1]
    error_of(await known.get(member(team, stranger)), 404, "not_found")
    assert field_of(await known.get(path, params={"starting_after": stranger.user_id})) == "starting_after"


async def test_pages_of_invitations_go_on_after_one_that_is_gone(shared: LoneApi) -> None:
    owner, other = await shared.caller(), await shared.caller()
    path = f"/teams/{owner.team_id}/invitations"

    async def invitation(by: Caller) -> int:
        return int(data_of(await by.post(f"/teams/{by.team_id}/invitations", {"role": "member"}), 201)["id"])

    async def after(cursor: int) -> httpx.Response:
        return await owner.get(path, params={"starting_after": cursor})

    foreign = await invitation(other)
    oldest, middle, newest = [await invitation(owner) for _ in range(3)]
    for gone, rest in ((middle, [oldest]), (newest, [oldest])):
        data_of(await owner.delete(f"{path}/{gone}"))
        assert [one["id"] for one in data_of(await after(gone))] == rest
    assert data_of(await after(oldest)) == []
    for wrong in (foreign, newest + 1000, 2**63 - 1):
        assert field_of(await after(wrong)) == "starting_after"


async def test_admins_see_and_end_keys_that_are_for_the_team(shared: LoneApi) -> None:
    owner, guest = await shared.caller(), await shared.caller()
    team = owner.team_id
    await joined(owner, team, guest)
    bound, wide, elsewhere = (
        await minted(guest, team_id=team),
        await minted(guest),
        await minted(guest, team_id=guest.team_id),
    )
    child = await minted(wide)
    listed = data_of(await owner.get("/api_keys", params={"team_id": team}))
    assert {one["id"] for one in listed} >= {guest.key_id, bound.key_id, wide.key_id, child.key_id, owner.key_id}
    assert elsewhere.key_id not in {one["id"] for one in listed}
    page = data_of(
        await owner.get("/api_keys", params={"team_id": team, "starting_after": listed[0]["id"], "limit": 1})
    )
    assert page == listed[1:2]
    error_of(await guest.get("/api_keys", params={"team_id": team}), 403, "insufficient_role")
    assert field_of(await guest.get("/api_keys", params={"team_id": 999_999})) == "team_id"
    assert field_of(await guest.get("/api_keys", params={"team_id": "x"})) == "team_id"
    assert data_of(await owner.get(f"/api_keys/{bound.key_id}"))["user_id"] == guest.user_id
    error_of(await owner.get(f"/api_keys/{elsewhere.key_id}"), 404, "not_found")
    error_of(await owner.patch(f"/api_keys/{bound.key_id}", {"name": "a"}), 404, "not_found")
    error_of(await owner.post(f"/api_keys/{bound.key_id}/rotations", {}), 404, "not_found")
    error_of(await guest.delete(f"/api_keys/{owner.key_id}"), 404, "not_found")
    assert data_of(await owner.delete(f"/api_keys/{bound.key_id}"))["revoked"] is True
    error_of(await bound.get("/me"), 403, "invalid_api_key")
    ended = data_of(
        await owner.request("DELETE", f"/api_keys/{wide.key_id}", key=str(uuid4()), params={"minted": "true"})
    )
    assert (ended["revoked"], ended["revoked_at"], ended["ended_teams"]) == (False, None, [team])
    assert ended["minted_revoked"] == [child.key_id]
    for key in (wide, child):
        assert [one["id"] for one in data_of(await key.get("/me"))["teams"]] == [guest.team_id]
    assert len(data_of(await guest.get("/me"))["teams"]) == 2
    error_of(await owner.delete(f"/api_keys/{elsewhere.key_id}"), 404, "not_found")


async def test_admins_see_nothing_of_a_keys_other_teams(shared: LoneApi) -> None:
    owner, guest, third = await shared.caller(), await shared.caller(), await shared.caller()
    team = owner.team_id
    await joined(owner, team, guest)
    await joined(third, third.team_id, guest)
    at_home = data_of(await guest.create("home", team_id=guest.team_id), 202)["uuid"]
    of_team = data_of(await guest.create("shared", team_id=team), 202)["uuid"]
    wide, elsewhere = await minted(guest, databases=[at_home, of_team]), await minted(guest, databases=[at_home])
    data_of(await third.delete(f"/teams/{third.team_id}/members/{guest.user_id}"))
    listed = {one["id"]: one for one in data_of(await owner.get("/api_keys", params={"team_id": team}))}
    assert listed[wide.key_id]["databases"] == [of_team]
    assert listed[elsewhere.key_id]["databases"] == []
    assert listed[wide.key_id]["ended_teams"] == [], "what happened in other teams is theirs"
    assert data_of(await owner.get(f"/api_keys/{wide.key_id}")) == listed[wide.key_id]
    mine = data_of(await guest.get(f"/api_keys/{wide.key_id}"))
    assert (mine["databases"], mine["ended_teams"]) == ([at_home, of_team], [third.team_id])
    ended = data_of(await owner.delete(f"/api_keys/{wide.key_id}"))
    assert ended["ended_teams"] == [team]


async def test_keys_for_less_make_and_join_no_teams(shared: LoneApi) -> None:
    owner, guest = await shared.caller(), await shared.caller()
    token = await invited(owner, owner.team_id)
    uuid = data_of(await guest.create(), 202)["uuid"]
    for narrow in (await minted(guest, team_id=guest.team_id), await minted(guest, databases=[uuid])):
        error_of(await narrow.post("/teams", {"name": "a"}), 403, "exceeds_own_key")
        error_of(await accept(narrow, token), 403, "exceeds_own_key")


@pytest.mark.parametrize("order", [1, -1])
async def test_removed_while_accepting(shared: LoneApi, order: int) -> None:
    """Of a removal of the inviter and an acceptance at once, either is first, and the second sees it."""
    await shared.warm_up()
    owner, admin, guest = [await shared.caller() for _ in range(3)]
    team = owner.team_id
    await joined(owner, team, admin, "admin")
    token = await invited(admin, team, "admin")
    both = [owner.delete(member(team, admin)), accept(guest, token)][::order]
    removed, accepted = (await asyncio.gather(*both))[::order]
    data_of(removed)
    roles = await fetch("SELECT role FROM memberships WHERE team_id = $1 AND user_id = $2", team, guest.user_id)
    if accepted.is_success:
        assert [row["role"] for row in roles] == ["admin"]
    else:
        error_of(accepted, 404, "not_found")
        assert not roles


async def test_removed_while_minting(shared: LoneApi) -> None:
    """A key that is minted while its user is removed is without the team, whichever is first."""
    await shared.warm_up()
    owner, guest = await shared.caller(), await shared.caller()
    team = owner.team_id
    for _ in range(4):
        await joined(owner, team, guest)
        asked = {"name": "made", "permissions": ["teams:read"]}
        fresh = await another_key(guest)
        made, removed = await asyncio.gather(fresh.post("/api_keys", asked), owner.delete(member(team, guest)))
        data_of(removed)
        ended = data_of(made, 201)
        key = data_of(await fresh.get(f"/api_keys/{ended['id']}"))
        assert team in key["ended_teams"]
        guest = fresh
        await joined(owner, team, guest)
        error_of(await replace(fresh, api_key=made.json()["api_key"]).get(f"/teams/{team}"), 403, "not_a_member")
        data_of(await owner.delete(member(team, guest)))


async def test_demoted_while_minting(shared: LoneApi) -> None:
    """Minting after the demotion is refused, and a key that was minted before it does no more than the role."""
    await shared.warm_up()
    owner, guest = await shared.caller(), await shared.caller()
    team = owner.team_id
    await joined(owner, team, guest)
    uuid = data_of(await owner.create(), 202)["uuid"]
    for _ in range(4):
        data_of(await owner.patch(member(team, guest), {"role": "member"}))
        asked = {"name": "made", "permissions": [*ALL_SCOPES], "team_id": team}
        made, demoted = await asyncio.gather(
            guest.post("/api_keys", asked), owner.patch(member(team, guest), {"role": "viewer"})
        )
        data_of(demoted)
        if made.is_success:
            key = replace(guest, api_key=made.json()["api_key"])
            error_of(await key.patch(f"/databases/{uuid}", {"name": "a"}), 403, "insufficient_role")
        else:
            error_of(made, 403, "insufficient_role")


@together(
    ("method", "path", "body"),
    [
        ("POST", "/teams/{team}/invitations", {"role": "member"}),
        ("PATCH", "/teams/{team}", {"name": "Taken"}),
        ("DELETE", "/teams/{team}", None),
        ("DELETE", "/teams/{team}/members/{user}", None),
        ("POST", "/invitation_acceptances", {"token": "of another team"}),
    ],
)
async def test_revoked_while_waiting_for_the_team(shared: LoneApi, method: str, path: str, body: Any) -> None:
    owner, other = await shared.caller(), await shared.caller()
    key = await another_key(owner)
    if path == "/invitation_acceptances":
        body = {"token": await invited(other, other.team_id)}
    named = path.format(team=owner.team_id, user=owner.user_id)
    async with row_lock(shared.control_dsn, "teams") as waiters:
        content = None if body is None else json.dumps(body)
        asked = asyncio.ensure_future(key.request(method, named, key="k", content=content))
        await until(waiters)
        data_of(await owner.delete(f"/api_keys/{key.key_id}"))
    error_of(await asked, 403, "invalid_api_key")
    assert data_of(await owner.get(f"/teams/{owner.team_id}/invitations")) == []
    assert [(team["id"], team["name"]) for team in data_of(await owner.get("/teams"))] == [(owner.team_id, "Test User")]


@together(
    ("method", "path", "body"),
    [
        ("POST", "/teams", {"name": "Taken"}),
        ("POST", "/teams/{own}/members", {"user_id": 0, "role": "owner"}),
        ("PATCH", "/teams/{shared}/members/{other}", {"role": "owner"}),
        ("DELETE", "/teams/{shared}/members/{other}", None),
        ("DELETE", "/teams/{shared}/members/{owner}", None),
        ("DELETE", "/api_keys/{others}", None),
    ],
)
async def test_revoked_while_waiting_for_a_person(shared: LoneApi, method: str, path: str, body: Any) -> None:
    owner, other = await shared.caller(), await shared.caller()
    team = await team_of(owner)
    await joined(owner, team, other, "owner" if path.endswith("{owner}") else "member")
    key = await another_key(owner)
    ids = {"owner": owner.user_id, "other": other.user_id, "others": other.key_id, "shared": team, "own": owner.team_id}
    if body and "user_id" in body:
        body = {**body, "user_id": other.user_id}
    before = await _places_of(owner, other)
    async with rows_held(shared.control_dsn, "users") as holder:
        content = None if body is None else json.dumps(body)
        asked = asyncio.ensure_future(key.request(method, path.format(**ids), key="k", content=content))
        await until(waiters)
        await holder.execute("UPDATE api_keys SET revoked_at = now() WHERE id = $1", key.key_id)
    error_of(await asked, 403, "invalid_api_key")
    assert await _places_of(owner, other) == before


async def _places_of(*people: Caller) -> Any:
    """The teams that they are in, and those for which their keys have ended."""
    return await fetch(
        """
        SELECT m.user_id, m.team_id, m.role,
               array(SELECT k.ended_teams::text FROM api_keys k WHERE k.user_id = m.user_id ORDER BY k.id)
        FROM memberships m WHERE m.user_id = any($1) ORDER BY 1, 2
        """,
        [one.user_id for one in people],
    )


async def test_numbers_are_bounded(copies: Copies) -> None:
    async with copies.lent() as dsn, lone_api(dsn, teams_per_user=2, members_per_team=2, invitations_per_team=1) as api:
        owner, one, other = [await api.caller() for _ in range(3)]
        team = await team_of(owner)
        error_of(await owner.post("/teams", {"name": "third"}), 422, "teams_limit_reached")
        token = await invited(owner, team)
        answer = await owner.post(f"/teams/{team}/invitations", {"role": "member"})
        assert error_of(answer, 422, "team_limit_reached")["details"] == {"resource": "open_invitations", "limit": 1}
        data_of(await accept(one, token), 201)
        token = await invited(owner, team)
        answer = await accept(other, token)
        assert error_of(answer, 422, "team_limit_reached")["details"] == {"resource": "members", "limit": 2}
        answer = await accept(one, await invited(other, other.team_id))
        error_of(answer, 422, "teams_limit_reached")
        data_of(await one.delete(member(team, one)))
        data_of(await accept(other, token), 201)
