"""Passkeys: added by who is signed in, and then they sign in by themselves."""

import asyncio
import os
from typing import Any

import httpx
import pytest

from app.store.session import execute, fetch
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.authenticator import Authenticator
from tests.support.in_process import LoneApi, lone_api
from tests.support.meeting import rows_held, waiters
from tests.support.people import Person, cookie_of, sign_in
from tests.support.waiting import until


async def added(person: Person, authenticator: Authenticator, name: str = "Laptop") -> httpx.Response:
    options = data_of(await person.post("/passkey_challenges", {}), 201)["options"]
    return await person.post("/passkeys", {"name": name, "credential": authenticator.create(options)})


async def options_for(person: Person) -> dict[str, Any]:
    """Of somebody who isn't signed in."""
    answer = await person.post("/sign_in_challenges", {}, headers={"Cookie": ""})
    options: dict[str, Any] = data_of(answer, 201)["options"]
    return options


async def used(person: Person, credential: dict[str, Any]) -> httpx.Response:
    return await person.post("/sign_ins/passkeys", {"credential": credential}, headers={"Cookie": ""})


async def test_a_passkey_signs_its_person_in(person: Person) -> None:
    authenticator = Authenticator(person.origin)
    made = data_of(await added(person, authenticator), 201)
    assert (made["name"], made["host"], made["last_used_at"]) == ("Laptop", "test", None)
    answer = await used(person, authenticator.get(await options_for(person)))
    assert data_of(answer, 201)["method"] == "passkey"
    again = Person(person.http, cookie_of(answer)[1], person.user_id, person.team_id, person.origin)
    assert data_of(await again.get("/session"))["user"]["id"] == person.user_id
    (listed,) = data_of(await again.get("/passkeys"))
    assert listed["uuid"] == made["uuid"]
    assert listed["last_used_at"]


async def test_an_answer_counts_once(person: Person, shared: LoneApi) -> None:
    await shared.warm_up()
    authenticator = Authenticator(person.origin)
    data_of(await added(person, authenticator), 201)
    credential = authenticator.get(await options_for(person))
    answers = await asyncio.gather(*(used(person, credential) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [201] + [403] * 4


async def test_a_challenge_that_is_too_old(person: Person) -> None:
    authenticator = Authenticator(person.origin)
    data_of(await added(person, authenticator), 201)
    options = await options_for(person)
    await execute("UPDATE passkey_challenges SET expires_at = now()")
    error_of(await used(person, authenticator.get(options)), 403, "sign_in_refused")


async def test_a_challenge_for_one_thing_is_not_for_another(shared: LoneApi, person: Person) -> None:
    authenticator = Authenticator(person.origin)
    other = await sign_in(shared.http, shared.control_dsn, await shared.caller())
    options = data_of(await other.post("/passkey_challenges", {}), 201)["options"]
    credential = {"name": "x", "credential": authenticator.create(options)}
    error_of(await person.post("/passkeys", credential), 403, "sign_in_refused")
    data_of(await added(person, authenticator), 201)
    options = data_of(await person.post("/passkey_challenges", {}), 201)["options"]
    credential = authenticator.get({**options, "rpId": "test"})
    error_of(await used(person, credential), 403, "sign_in_refused")


@pytest.mark.parametrize("wrong", ["origin", "verification", "signature", "handle", "host", "count", "unknown"])
async def test_an_answer_that_is_not_right(person: Person, wrong: str) -> None:
    authenticator = Authenticator(person.origin)
    data_of(await added(person, authenticator), 201)
    data_of(await used(person, authenticator.get(await options_for(person))), 201)
    options = await options_for(person)
    if wrong == "origin":
        authenticator.origin = "http://test:9000"
    elif wrong == "verification":
        authenticator.flags = 0x01
    elif wrong == "handle":
        authenticator.user_handle = b"somebody else"
    elif wrong == "host":
        options["rpId"] = "evil.example"
    elif wrong == "count":
        authenticator.count = 0
    elif wrong == "unknown":
        authenticator.credential_id = bytes(32)
    credential = authenticator.get(options)
    if wrong == "signature":
        credential["response"]["signature"] = authenticator.get(options)["response"]["signature"]
    answer = await used(person, credential)
    error_of(answer, 403, "sign_in_refused")
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("wrong", ["origin", "verification", "host", "attestation", "length"])
async def test_a_new_passkey_that_is_not_right(person: Person, wrong: str) -> None:
    authenticator = Authenticator(
        "http://test:9000" if wrong == "origin" else person.origin, verified=wrong != "verification"
    )
    options = data_of(await person.post("/passkey_challenges", {}), 201)["options"]
    if wrong == "host":
        options["rp"]["id"] = "evil.example"
    elif wrong == "attestation":
        authenticator.attestation = {"fmt": "android-safetynet", "attStmt": {"ver": "1", "response": "no bytes"}}
    elif wrong == "length":
        authenticator.credential_id = os.urandom(3000)
    made = authenticator.create(options)
    if wrong == "length":
        # Only what the authenticator says has it; these have bounds of their own.
        made["id"] = made["rawId"] = "AAAA"
    error_of(await person.post("/passkeys", {"name": "x", "credential": made}), 403, "sign_in_refused")
    assert data_of(await person.get("/passkeys")) == []


@pytest.mark.parametrize("bytes_of", ["clientDataJSON", "attestationObject"])
@pytest.mark.parametrize("garbage", ["AAAA", "_____w", "e30", "n_____", "gQ", "W10", "bnVsbA"])
async def test_what_is_no_credential_at_all(person: Person, bytes_of: str, garbage: str) -> None:
    authenticator = Authenticator(person.origin)
    options = data_of(await person.post("/passkey_challenges", {}), 201)["options"]
    credential = authenticator.create(options)
    credential["response"][bytes_of] = garbage
    error_of(await person.post("/passkeys", {"name": "x", "credential": credential}), 403, "sign_in_refused")


async def test_naming_and_removing(shared: LoneApi, person: Person) -> None:
    authenticator = Authenticator(person.origin)
    uuid = data_of(await added(person, authenticator), 201)["uuid"]
    error_of(await added(person, authenticator), 403, "sign_in_refused")
    renamed = await person.request("PATCH", f"/passkeys/{uuid}", key="k1", content='{"name": "Phone"}')
    assert data_of(renamed)["name"] == "Phone"
    stranger = await sign_in(shared.http, shared.control_dsn, await shared.caller())
    error_of(await stranger.delete(f"/passkeys/{uuid}"), 404, "not_found")
    assert data_of(await person.delete(f"/passkeys/{uuid}"))["removed"] is True
    assert data_of(await person.get("/passkeys")) == []
    error_of(await used(person, authenticator.get(await options_for(person))), 403, "sign_in_refused")
    data_of(await person.get("/session"))


async def test_a_person_has_no_more_than_so_many(person: Person) -> None:
    for _ in range(20):
        data_of(await added(person, Authenticator(person.origin)), 201)
    error_of(await added(person, Authenticator(person.origin)), 422, "passkey_limit_reached")
    page = body_of(await person.get("/passkeys", params={"limit": "15"}))
    rest = body_of(await person.get("/passkeys", params={"limit": "15", "starting_after": page["data"][-1]["uuid"]}))
    assert (len(page["data"]), len(rest["data"]), rest["has_more"]) == (15, 5, False)


async def test_who_was_signed_out_adds_none(shared: LoneApi, person: Person) -> None:
    """Also with a request that waits while the session is ended."""
    options = data_of(await person.post("/passkey_challenges", {}), 201)["options"]
    credential = Authenticator(person.origin).create(options)
    async with rows_held(shared.control_dsn, "users") as other:
        asked = asyncio.ensure_future(person.post("/passkeys", {"name": "Unseen", "credential": credential}))
        await until(waiters)
        await other.execute("DELETE FROM sessions WHERE user_id = $1", person.user_id)
    error_of(await asked, 401, "session_ended")
    assert await fetch("SELECT 1 FROM passkeys WHERE user_id = $1", person.user_id) == []


async def test_a_host_that_is_no_name(control_dsn: str) -> None:
    async with lone_api(control_dsn, public_url="http://test") as api:
        person = await sign_in(api.http, control_dsn, await api.caller())
    async with lone_api(control_dsn, public_url="http://127.0.0.1:8000") as api:
        here = Person(api.http, person.token, person.user_id, person.team_id, "http://127.0.0.1:8000")
        assert field_of(await here.post("/passkey_challenges", {})) == "host"
