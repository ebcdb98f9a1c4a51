"""Callers who may no longer be here: what they sent before, send again, or send the end of, is refused."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.auth.keys import hash_key
from app.auth.members import delete_member
from app.auth.scopes import Scope
from app.auth.standing import LONG_SECONDS, Standing, still_good
from app.store.session import execute, fetch, fetch_scalar
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.people import Person, sign_in
from tests.support.waiting import until

End = Callable[[], Awaitable[Any]]
_LONG = "SELECT clock_timestamp() > $1::timestamptz + make_interval(secs => $2)"


@pytest.fixture
async def team(shared: LoneApi) -> int:
    """One that has an owner."""
    return (await shared.caller()).team_id


async def _add(team: int, user_id: int, role: str = "member") -> None:
    await execute("INSERT INTO memberships (user_id, team_id, role) VALUES ($1, $2, $3)", user_id, team, role)


async def _member(shared: LoneApi, team: int) -> Caller:
    caller = await shared.caller()
    await _add(team, caller.user_id)
    return caller


async def _signed_in(shared: LoneApi, team: int) -> Person:
    return await sign_in(shared.http, shared.control_dsn, await _member(shared, team))


async def _create(person: Person, team: int, key: str) -> httpx.Response:
    return await person.request("POST", "/databases", key=key, content=json.dumps({"name": "made", "team_id": team}))


async def test_a_stored_answer_is_not_given_to_a_person_who_has_left(shared: LoneApi, team: int) -> None:
    person = await _signed_in(shared, team)
    data_of(await _create(person, team, "a"), 202)
    assert body_of(await _create(person, team, "a"), 202)["idempotency_replay"] is True
    await delete_member(team, person.user_id)
    error_of(await _create(person, team, "a"), 403, "not_a_member")
    data_of(await _create(person, person.team_id, "b"), 202)


async def test_what_was_begun_is_not_gone_on_with_for_who_has_left(shared: LoneApi, team: int) -> None:
    person = await _signed_in(shared, team)
    data_of(await _create(person, team, "a"), 202)
    of_person = "WHERE user_id = $1 AND response_sealed IS NULL"
    await execute(
        "UPDATE idempotency_keys SET response_status = NULL, response_sealed = NULL WHERE user_id = $1", person.user_id
    )
    await delete_member(team, person.user_id)
    error_of(await _create(person, team, "a"), 403, "not_a_member")
    assert await fetch_scalar(int, f"SELECT count(*) FROM idempotency_keys {of_person}", person.user_id) == 1
    await _add(team, person.user_id)
    data_of(await _create(person, team, "a"), 202)


async def test_who_leaves_a_team_is_answered_again(shared: LoneApi, team: int) -> None:
    person = await _signed_in(shared, team)
    path = f"/teams/{team}/members/{person.user_id}"
    for _ in range(2):
        data_of(await person.request("DELETE", path, key="leaving"))


async def _sent_late(sender: Caller | Person, path: str, body: Any, end: End) -> httpx.Response:
    """The request's last byte comes after `end`, and long after it was let in."""

    async def pieces() -> AsyncIterator[bytes]:
        whole = json.dumps(body).encode()
        # Asked for by the handler, which is reached by who was let in.
        yield whole[:-1]
        [now] = await fetch("SELECT clock_timestamp() AS at")
        await end()
        await until(lambda: fetch_scalar(bool, _LONG, now["at"], LONG_SECONDS + 0.2))
        yield whole[-1:]

    headers = {"Idempotency-Key": str(uuid4())}
    if isinstance(sender, Caller):
        headers["Authorization"] = f"Bearer {sender.api_key}"
    else:
        headers |= sender.from_a_page
    return await sender.http.post(f"/api/v1{path}", headers=headers, content=pieces())


async def test_a_late_end_is_taken_of_who_is_still_here(shared: LoneApi, team: int) -> None:
    caller, person = await _member(shared, team), await _signed_in(shared, team)

    async def narrow() -> None:
        await execute("UPDATE api_keys SET allowed_ips = '{127.0.0.0/8}' WHERE id = $1", caller.key_id)

    for sender in (caller, person):
        data_of(await _sent_late(sender, "/databases", {"name": "late", "team_id": team}, narrow), 202)


async def test_a_late_end_is_refused_of_a_member_who_was_removed(shared: LoneApi, team: int) -> None:
    for sender in (await _member(shared, team), await _signed_in(shared, team)):

        async def remove(user_id: int = sender.user_id) -> None:
            await delete_member(team, user_id)

        error_of(await _sent_late(sender, "/databases", {"name": "late", "team_id": team}, remove), 403, "not_a_member")
    assert await fetch("SELECT 1 FROM databases WHERE team_id = $1", team) == []


async def test_a_late_end_is_refused_of_a_smaller_role(shared: LoneApi, team: int) -> None:
    sender = await _member(shared, team)

    async def reduce() -> None:
        await execute("UPDATE memberships SET role = 'viewer' WHERE user_id = $1", sender.user_id)

    blueprint = {"name": "late", "sql_content": "SELECT 1", "team_id": team}
    error_of(await _sent_late(sender, "/blueprints", blueprint, reduce), 403, "insufficient_role")


@pytest.mark.parametrize(
    "change",
    [
        "revoked_at = now()",
        "expires_at = now()",
        "hash = '\\x00', previous_hash = NULL, previous_until = NULL",
        "scopes = '{blueprints:read}'",
        "databases = '{}'",
        "allowed_ips = '{192.0.2.0/24}'",
    ],
)
async def test_a_late_end_is_refused_of_a_key_that_is_less(shared: LoneApi, change: str) -> None:
    sender = await shared.caller()

    async def lessen() -> None:
        await execute(f"UPDATE api_keys SET {change} WHERE id = $1", sender.key_id)

    body = {"name": "late", "sql_content": "SELECT 1"}
    error_of(await _sent_late(sender, "/blueprints", body, lessen), 403, "invalid_api_key")


async def test_a_late_end_is_refused_of_a_session_that_ended(shared: LoneApi, team: int) -> None:
    person = await _signed_in(shared, team)

    async def sign_out() -> None:
        data_of(await person.delete("/sessions"))

    body = {"name": "late", "sql_content": "SELECT 1"}
    error_of(await _sent_late(person, "/blueprints", body, sign_out), 401, "session_ended")


async def test_a_stream_ends_with_the_text_of_its_key(shared: LoneApi) -> None:
    caller = await shared.caller()
    streaming = Standing(caller.key_id, caller.team_id, key_hash=hash_key(caller.api_key))
    assert await still_good([streaming], Scope.DATABASES_READ) == {streaming}
    path = f"/api_keys/{caller.key_id}/rotations"
    replaced = body_of(await caller.post(path, {"overlap_seconds": 60}), 201)
    renewed = replace(caller, api_key=replaced["api_key"])
    assert await still_good([streaming], Scope.DATABASES_READ) == {streaming}, "both texts are the key's"
    again = body_of(await renewed.post(path, {"overlap_seconds": 0}), 201)
    assert await still_good([streaming], Scope.DATABASES_READ) == set()
    newest = Standing(caller.key_id, caller.team_id, key_hash=hash_key(again["api_key"]))
    assert await still_good([streaming, newest], Scope.DATABASES_READ) == {newest}


async def test_a_stream_ends_with_the_networks_of_its_key(shared: LoneApi) -> None:
    caller = await shared.caller()
    near, far = [
        Standing(caller.key_id, caller.team_id, key_hash=hash_key(caller.api_key), address=address)
        for address in ("192.0.2.7", "2001:db8::7")
    ]
    assert await still_good([near, far], Scope.DATABASES_READ) == {near, far}
    await execute("UPDATE api_keys SET allowed_ips = '{192.0.2.0/24}' WHERE id = $1", caller.key_id)
    assert await still_good([near, far], Scope.DATABASES_READ) == {near}
