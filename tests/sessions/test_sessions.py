"""What a session lets its person do, how long, and how it is ended."""

import asyncio
from datetime import datetime
from uuid import uuid4

import pytest

from app.auth.members import delete_member
from app.auth.scopes import Scope
from app.auth.standing import Standing, still_good
from app.store.session import execute, fetch, fetch_scalar
from tests.support.answers import body_of, data_of, error_of
from tests.support.copies import Copies
from tests.support.in_process import LoneApi, lone_api
from tests.support.meeting import meet, rows_held, waiters
from tests.support.people import Person, follow, link_for, sign_in
from tests.support.together import together


async def test_a_person_may_do_what_their_role_allows(shared: LoneApi, person: Person) -> None:
    made = data_of(await person.post("/blueprints", {"name": "one", "sql_content": "SELECT 1"}), 201)
    assert made["uuid"] in (await person.get("/blueprints")).text
    await execute("UPDATE memberships SET role = 'viewer' WHERE user_id = $1", person.user_id)
    error_of(await person.post("/blueprints", {"name": "two", "sql_content": "SELECT 1"}), 403, "insufficient_role")
    assert made["uuid"] in (await person.get("/blueprints")).text


async def test_who_is_removed_from_a_team_has_nothing_there_with_the_next_request(
    shared: LoneApi, person: Person
) -> None:
    data_of(await person.get("/blueprints"))
    await delete_member(person.team_id, person.user_id)
    error_of(await person.get("/blueprints"), 403, "not_a_member")
    assert data_of(await person.get("/session"))["teams"] == []


async def test_who_is_deleted_is_nobody_with_the_next_request(shared: LoneApi, person: Person) -> None:
    await execute("DELETE FROM users WHERE id = $1", person.user_id)
    error_of(await person.get("/sessions"), 401, "session_ended")


async def test_who_they_are_by_me(shared: LoneApi, person: Person) -> None:
    me = data_of(await person.get("/me"))
    assert (me["api_key"]["id"], me["api_key"]["name"]) == (0, "console session")
    assert me["teams"] == [{"id": person.team_id, "name": "Test User", "role": "owner"}]
    assert [one for one in me["api_key"]["permissions"] if one.startswith("operator:")] == []


async def test_a_key_is_no_session(shared: LoneApi) -> None:
    caller = await shared.caller()
    for method, path in (("GET", "/sessions"), ("DELETE", "/sessions")):
        error_of(await caller.request(method, path, key=str(uuid4())), 403, "session_required")


async def test_a_request_with_a_key_is_the_keys_whatever_cookies_it_has(shared: LoneApi, person: Person) -> None:
    caller = await shared.caller()
    headers = {"Authorization": f"Bearer {caller.api_key}"}
    me = data_of(await person.get("/me", headers=headers))
    assert me["api_key"]["id"] == caller.key_id
    # Also where the key is none: nobody falls back to the cookie.
    wrong = {"Authorization": "Bearer pk_live_wrong"}
    error_of(await person.get("/me", headers=wrong), 403, "invalid_api_key")


@pytest.mark.parametrize(
    "ended", ["expires_at = now()", "last_used_at = now() - make_interval(secs => idle_seconds)"], ids=["age", "idle"]
)
async def test_a_session_whose_time_has_passed(shared: LoneApi, person: Person, ended: str) -> None:
    data_of(await person.get("/session"))
    await execute(f"UPDATE sessions SET {ended} WHERE user_id = $1", person.user_id)
    error_of(await person.get("/sessions"), 401, "session_ended")


async def test_use_keeps_a_session_from_becoming_idle(shared: LoneApi, person: Person) -> None:
    ends = await fetch_scalar(
        datetime,
        "UPDATE sessions SET last_used_at = now() - interval '11 hours', expires_at = now() + interval '2 hours'"
        " WHERE user_id = $1 RETURNING expires_at",
        person.user_id,
    )
    before = data_of(await person.get("/session"))
    after = data_of(await person.get("/session"))
    assert after["idle_expires_at"] >= before["idle_expires_at"]
    (row,) = await fetch(
        "SELECT now() - last_used_at < '1 minute' AS used, expires_at FROM sessions WHERE user_id = $1", person.user_id
    )
    assert row["used"]
    assert row["expires_at"] == ends, "it ends when it was to end"


async def test_a_session_that_is_being_ended_holds_up_no_request(shared: LoneApi, person: Person) -> None:
    """Where the two waited for each other, all requests that were let in together would fail."""
    await execute("UPDATE sessions SET last_used_at = now() - interval '5 minutes' WHERE user_id = $1", person.user_id)
    used = "SELECT last_used_at > now() - interval '4 minutes' FROM sessions WHERE user_id = $1"
    async with rows_held(shared.control_dsn, f"sessions WHERE user_id = {person.user_id}"):
        data_of(await person.get("/sessions"))
        assert not await fetch_scalar(bool, used, person.user_id)
    data_of(await person.get("/sessions"))
    assert await fetch_scalar(bool, used, person.user_id)


async def test_the_sessions_of_a_person(shared: LoneApi) -> None:
    caller = await shared.caller()
    one, other = [await sign_in(shared.http, shared.control_dsn, caller) for _ in range(2)]
    stranger = await sign_in(shared.http, shared.control_dsn, await shared.caller())
    listed = data_of(await other.get("/sessions"))
    assert [session["current"] for session in listed] == [True, False]
    first = body_of(await one.get("/sessions", params={"limit": "1"}))
    assert first["has_more"] is True
    rest = body_of(await one.get("/sessions", params={"starting_after": first["data"][0]["uuid"]}))
    assert [session["uuid"] for session in rest["data"]] == [listed[1]["uuid"]]
    error_of(await stranger.delete(f"/sessions/{listed[1]['uuid']}"), 404, "not_found")
    ended = await other.delete(f"/sessions/{listed[1]['uuid']}")
    assert data_of(ended)["ended"] is True
    assert "Set-Cookie" not in ended.headers
    error_of(await one.get("/sessions"), 401, "session_ended")
    data_of(await other.get("/session"))


async def test_signing_out(shared: LoneApi, person: Person) -> None:
    uuid = data_of(await person.get("/session"))["uuid"]
    answer = await person.delete(f"/sessions/{uuid}")
    assert data_of(answer)["uuid"] == uuid
    assert answer.headers["Set-Cookie"].startswith("headwater_session=; Path=/; Max-Age=0")
    error_of(await person.get("/sessions"), 401, "session_ended")


async def test_signing_out_everywhere(shared: LoneApi) -> None:
    caller = await shared.caller()
    sessions = [await sign_in(shared.http, shared.control_dsn, caller) for _ in range(3)]
    stranger = await sign_in(shared.http, shared.control_dsn, await shared.caller())
    assert data_of(await sessions[1].delete("/sessions"))["ended"] == 3
    for one in sessions:
        error_of(await one.get("/sessions"), 401, "session_ended")
    data_of(await stranger.get("/session"))
    body_of(await caller.get("/me"))
    actions = [event["action"] for event in data_of(await caller.get("/audit_events"))]
    assert actions.count("session.end_all") == 1


@together("everywhere", [True, False])
async def test_signing_out_waits_for_what_a_session_is_adding(shared: LoneApi, everywhere: bool) -> None:
    """So that what the person finds afterwards is all that there is."""
    person = await sign_in(shared.http, shared.control_dsn, await shared.caller())
    uuid = data_of(await person.get("/session"))["uuid"]
    async with rows_held(shared.control_dsn, "users"):
        ending = asyncio.ensure_future(person.delete("/sessions" if everywhere else f"/sessions/{uuid}"))
        while not await waiters():
            assert not ending.done()
    data_of(await ending)


async def test_signing_in_anew_while_signing_out_everywhere(shared: LoneApi) -> None:
    """Neither waits for what the other one has locked."""
    caller = await shared.caller()
    for _ in range(4):
        person = await sign_in(shared.http, shared.control_dsn, caller)
        token = await link_for(shared.control_dsn, caller.user_id)
        cookie = {"Cookie": f"{person.cookie}={person.token}"}
        made, ended = await meet(
            shared.control_dsn, "users", [follow(shared.http, token, headers=cookie), person.delete("/sessions")]
        )
        assert made.status_code == 201
        data_of(ended)


async def test_all_sessions_of_a_person_share_one_rate(copies: Copies) -> None:
    async with copies.lent() as dsn, lone_api(dsn, session_requests_per_minute=6) as api:
        caller = await api.caller()
        one, other = [await sign_in(api.http, dsn, caller) for _ in range(2)]
        stranger = await sign_in(api.http, dsn, await api.caller())
        answers = await asyncio.gather(*(who.get("/sessions") for who in (one, other) * 5))
        assert sorted(answer.status_code for answer in answers) == [200] * 6 + [429] * 4
        left = sorted(int(answer.headers["RateLimit"].split(";")[1][2:]) for answer in answers)
        assert left == [0] * 4 + [0, 1, 2, 3, 4, 5]
        data_of(await stranger.get("/session"))
        body_of(await caller.get("/me"))


async def test_no_console_no_sessions(control_dsn: str) -> None:
    async with lone_api(control_dsn) as api:
        person = await sign_in(api.http, control_dsn, await api.caller())
    async with lone_api(control_dsn, console=False) as api:
        away = Person(api.http, person.token, person.user_id, person.team_id, person.origin)
        error_of(await away.get("/sessions"), 401, "unauthorized")
        error_of(await away.post("/sign_ins/links", {"token": "x"}), 404, "not_found")


async def test_who_is_signed_in_where_nobody_is(shared: LoneApi, person: Person) -> None:
    """A page that asks gets an answer and no error, and a browser forgets what has ended."""
    answer = await person.get("/session", headers={"Cookie": ""})
    assert data_of(answer) is None
    assert "Set-Cookie" not in answer.headers
    data_of(await person.delete("/sessions"))
    answer = await person.get("/session")
    assert data_of(answer) is None
    assert "Max-Age=0" in answer.headers["Set-Cookie"]


async def test_the_keys_of_a_person(shared: LoneApi, person: Person) -> None:
    """They make and see their own, and no key of theirs is wider than what they may do themselves."""
    made = data_of(await person.post("/api_keys", {"name": "ci", "permissions": ["databases:read"]}), 201)
    assert made["controls"]["requests_per_minute"] == 120
    assert made["minted_by"] is None
    listed = data_of(await person.get("/api_keys"))
    assert [key["name"] for key in listed] == ["ci", "test key"]
    answer = await person.post("/api_keys", {"name": "op", "permissions": ["operator:read"]})
    error_of(answer, 403, "exceeds_own_key")
    fast = {"name": "fast", "permissions": ["databases:read"], "controls": {"requests_per_minute": 601}}
    error_of(await person.post("/api_keys", fast), 403, "exceeds_own_key")
    rotated = await person.post(f"/api_keys/{made['id']}/rotations", {"overlap_seconds": 0})
    assert data_of(rotated, 201)["id"] == made["id"]
    data_of(await person.delete(f"/api_keys/{made['id']}"))
    stranger = await shared.caller()
    error_of(await person.get(f"/api_keys/{stranger.key_id}"), 404, "not_found")


async def test_who_has_begun_an_operation(shared: LoneApi, person: Person) -> None:
    await shared.add_host()
    answer = body_of(await person.post("/databases", {"name": "one"}), 202)
    shown = data_of(await person.get(f"/operations/{answer['operation']['uuid']}"))
    assert shown["requested_by"] == {"user_id": person.user_id, "api_key_id": None}
    assert shown["cancellable"] is True


async def test_what_is_open_ends_with_the_session_or_the_role(shared: LoneApi, person: Person) -> None:
    """An event stream is asked about again and again."""
    (row,) = await fetch("SELECT id FROM sessions WHERE user_id = $1", person.user_id)
    streaming = Standing(0, person.team_id, None, row["id"])
    elsewhere = Standing(0, person.team_id + 1_000_000, None, row["id"])
    assert await still_good([streaming, elsewhere], Scope.DATABASES_READ) == {streaming}
    await execute("UPDATE memberships SET role = 'viewer' WHERE user_id = $1", person.user_id)
    assert await still_good([streaming], Scope.DATABASES_WRITE) == set()
    assert await still_good([streaming], Scope.DATABASES_READ) == {streaming}
    for passed in (
        "expires_at = now()",
        "expires_at = now() + interval '1 hour', last_used_at = now() - interval '13 hours'",
    ):
        await execute(f"UPDATE sessions SET {passed} WHERE user_id = $1", person.user_id)
        assert await still_good([streaming], Scope.DATABASES_READ) == set()
    await execute("UPDATE sessions SET last_used_at = now() WHERE user_id = $1", person.user_id)
    data_of(await person.delete("/sessions"))
    assert await still_good([streaming], Scope.DATABASES_READ) == set()
