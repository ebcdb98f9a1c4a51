"""Links to sign in with: once, for a short time, for one person."""

import asyncio
import hashlib

from app.store.session import fetch
from tests.support.answers import data_of, error_of
from tests.support.in_process import LoneApi
from tests.support.meeting import rows_held, waiters
from tests.support.people import Person, cookie_of, follow, link_for, sign_in
from tests.support.waiting import until


async def test_a_link_signs_its_person_in(shared: LoneApi) -> None:
    caller = await shared.caller()
    answer = await follow(shared.http, await link_for(shared.control_dsn, caller.user_id))
    assert data_of(answer, 201)["method"] == "link"
    person = Person(shared.http, cookie_of(answer)[1], caller.user_id, caller.team_id, "http://test")
    session = data_of(await person.get("/session"))
    (row,) = await fetch("SELECT name, email FROM users WHERE id = $1", caller.user_id)
    assert session["user"] == {"object": "user", "id": caller.user_id, **dict(row)}
    assert session["teams"] == [{"id": caller.team_id, "name": "Test User", "tier": "pro", "role": "owner"}]
    assert session["operator"] is False
    assert session["current"] is True


async def test_of_the_token_only_its_digest_is_kept(shared: LoneApi) -> None:
    caller = await shared.caller()
    token = await link_for(shared.control_dsn, caller.user_id)
    (row,) = await fetch("SELECT token_hash, row_to_json(l)::text AS all FROM sign_in_links l ORDER BY id DESC LIMIT 1")
    assert row["token_hash"] == hashlib.sha256(token.encode()).digest()
    assert token not in row["all"]
    answer = await follow(shared.http, token)
    session = cookie_of(answer)[1]
    (row,) = await fetch("SELECT hash, row_to_json(s)::text AS all FROM sessions s ORDER BY id DESC LIMIT 1")
    assert row["hash"] == hashlib.sha256(session.encode()).digest()
    assert session not in row["all"]
    assert session not in answer.text


async def test_a_link_works_once(shared: LoneApi) -> None:
    token = await link_for(shared.control_dsn, (await shared.caller()).user_id)
    data_of(await follow(shared.http, token), 201)
    refused = await follow(shared.http, token)
    error_of(refused, 403, "sign_in_refused")
    assert "Set-Cookie" not in refused.headers


async def test_of_many_who_follow_at_once_one_gets_in(shared: LoneApi) -> None:
    await shared.warm_up()
    token = await link_for(shared.control_dsn, (await shared.caller()).user_id)
    answers = await asyncio.gather(*(follow(shared.http, token) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [201] + [403] * 9
    assert sum("Set-Cookie" in answer.headers for answer in answers) == 1


async def test_a_link_is_used_after_its_person_is_locked(shared: LoneApi) -> None:
    """As another one is made: else two that meet would wait for each other."""
    caller = await shared.caller()
    token = await link_for(shared.control_dsn, caller.user_id)
    async with rows_held(shared.control_dsn, "users") as holder:
        followed = asyncio.create_task(follow(shared.http, token))
        await until(waiters)
        await holder.execute("SELECT 1 FROM sign_in_links WHERE user_id = $1 FOR UPDATE NOWAIT", caller.user_id)
    data_of(await followed, 201)


async def test_a_link_that_has_expired(shared: LoneApi) -> None:
    token = await link_for(shared.control_dsn, (await shared.caller()).user_id, seconds=0)
    error_of(await follow(shared.http, token), 403, "sign_in_refused")


async def test_a_link_that_never_was(shared: LoneApi) -> None:
    error_of(await follow(shared.http, "x" * 43), 403, "sign_in_refused")


async def test_each_sign_in_has_a_token_of_its_own_and_ends_the_browsers_last_session(shared: LoneApi) -> None:
    """What somebody has put into a browser before is never what its person goes on with."""
    caller = await shared.caller()
    before = await sign_in(shared.http, shared.control_dsn, caller)
    planted = {"Cookie": f"{before.cookie}={before.token}"}
    answer = await follow(shared.http, await link_for(shared.control_dsn, caller.user_id), headers=planted)
    assert cookie_of(answer)[1] != before.token
    error_of(await before.get("/sessions"), 401, "session_ended")
    planted = {"Cookie": "headwater_session=chosen-by-somebody-else"}
    answer = await follow(shared.http, await link_for(shared.control_dsn, caller.user_id), headers=planted)
    assert cookie_of(answer)[1] != "chosen-by-somebody-else"


async def test_a_link_of_another_person_stays_as_it_is(shared: LoneApi) -> None:
    one, other = await shared.caller(), await shared.caller()
    kept = await link_for(shared.control_dsn, other.user_id)
    data_of(await follow(shared.http, await link_for(shared.control_dsn, one.user_id)), 201)
    assert data_of(await follow(shared.http, kept), 201)["current"] is True


async def test_a_sign_in_leaves_an_event(shared: LoneApi) -> None:
    caller = await shared.caller()
    person = await sign_in(shared.http, shared.control_dsn, caller)
    (event,) = data_of(await caller.get("/audit_events", params={"action": "session.open_by_link"}))
    assert event["actor"]["kind"] == "session"
    assert event["actor"]["user_id"] == caller.user_id
    assert event["subject"]["object"] == "session"
    assert event["subject"]["id"]
    assert person.token not in str(event)
