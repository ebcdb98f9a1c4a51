"""Endpoints over the API: created with their secret, listed, revoked, and nobody else's."""

import asyncio
import re
from typing import Any
from uuid import uuid4

import pytest

from app.outbox.event_types import EventType
from app.store.session import fetch
from app.webhooks.egress.lookups import Lookups
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi, lone_api
from tests.support.receiver import Receiver
from tests.support.together import together

URL = "https://192.0.2.1.example.com/hook"
FORM = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


async def created(caller: Caller, url: str = URL, **fields: Any) -> dict[str, Any]:
    return body_of(await caller.post("/webhook_endpoints", {"url": url, **fields}), 201)


async def test_created_with_its_secret_which_is_shown_once(lone: LoneApi) -> None:
    caller = await lone.caller()
    body = await created(caller, events=["database.deleted", "database.deleted"])
    assert body["message"]
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", body["secret"])
    endpoint = body["data"]
    assert FORM.fullmatch(endpoint.pop("created_at"))
    assert endpoint == {
        "object": "webhook_endpoint",
        "id": endpoint["id"],
        "team_id": caller.team_id,
        "url": URL,
        "events": ["database.deleted"],
        "status": "active",
        "last_success_at": None,
        "last_failure_at": None,
    }
    listed = await caller.get("/webhook_endpoints")
    assert data_of(listed)[0]["id"] == endpoint["id"]
    assert body["secret"] not in listed.text
    rows = await fetch("SELECT s::text AS row FROM webhook_secrets s UNION ALL SELECT k::text FROM idempotency_keys k")
    assert not any(body["secret"] in row["row"] for row in rows)


async def test_the_same_key_gets_the_same_secret(lone: LoneApi) -> None:
    caller, key = await lone.caller(), str(uuid4())
    first = body_of(await caller.post("/webhook_endpoints", {"url": URL}, key=key), 201)
    again = body_of(await caller.post("/webhook_endpoints", {"url": URL}, key=key), 201)
    assert (again["idempotency_replay"], again["secret"]) == (True, first["secret"])
    assert len(data_of(await caller.get("/webhook_endpoints"))) == 1


async def test_a_create_that_died_before_its_answer_is_gone_on_with(lone: LoneApi) -> None:
    caller, key = await lone.caller(), str(uuid4())
    first = body_of(await caller.post("/webhook_endpoints", {"url": URL}, key=key), 201)
    await fetch("UPDATE idempotency_keys SET response_status = NULL, response_sealed = NULL, locked_until = NULL")
    again = body_of(await caller.post("/webhook_endpoints", {"url": URL}, key=key), 201)
    assert (again["secret"], again["data"]["id"]) == (first["secret"], first["data"]["id"])


async def test_an_endpoint_is_revoked_once(lone: LoneApi) -> None:
    caller = await lone.caller()
    endpoint = (await created(caller))["data"]["id"]
    key = str(uuid4())
    assert data_of(await caller.delete(f"/webhook_endpoints/{endpoint}", key=key)) == {"id": endpoint}
    replay = body_of(await caller.delete(f"/webhook_endpoints/{endpoint}", key=key))
    assert (replay["data"], replay["idempotency_replay"]) == ({"id": endpoint}, True)
    assert (await caller.delete(f"/webhook_endpoints/{endpoint}")).status_code == 404
    assert (await caller.post(f"/webhook_endpoints/{endpoint}/test_deliveries", None)).status_code == 404
    assert (await caller.post(f"/webhook_endpoints/{endpoint}/secret_rotations", None)).status_code == 404
    assert data_of(await caller.get("/webhook_endpoints"))[0]["status"] == "revoked"
    assert data_of(await caller.get(f"/webhook_endpoints/{endpoint}/deliveries")) == []


REFUSED = {
    "no url": ({}, "url", "missing_required_field"),
    "null": ({"url": None}, "url", "invalid_field"),
    "no text": ({"url": 7}, "url", "invalid_field"),
    "http": ({"url": "http://example.com/"}, "url", "invalid_field"),
    "no host": ({"url": "https:///hook"}, "url", "invalid_field"),
    "credentials": ({"url": "https://user:pass@example.com/"}, "url", "invalid_field"),
    "too long": ({"url": "https://example.com/" + "x" * 2048}, "url", "invalid_field"),
    "unknown event": ({"url": URL, "events": ["database.exploded"]}, "events", "invalid_field"),
    "events null": ({"url": URL, "events": None}, "events", "invalid_field"),
    "events no list": ({"url": URL, "events": "ping"}, "events", "invalid_field"),
    "unknown field": ({"url": URL, "event": []}, "event", "invalid_field"),
    "another's team": ({"url": URL, "team_id": 2**60}, "team_id", "invalid_field"),
    "inside": ({"url": "https://127.0.0.1/"}, "url", "invalid_field"),
    "inside by name": ({"url": "https://localhost/"}, "url", "invalid_field"),
}


@together("case", REFUSED)
async def test_what_is_refused(lone: LoneApi, case: str) -> None:
    body, field, code = REFUSED[case]
    answer = await (await lone.caller()).post("/webhook_endpoints", body)
    error = body_of(answer, 422)["error"]
    assert (error["code"], error["details"]) == (code, {"field": field})
    assert not await fetch("SELECT 1 FROM webhook_endpoints")


async def test_a_name_server_that_hangs_holds_up_no_create(control_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked again whenever something is sent."""

    async def silent(self: Lookups, host: str, party: str) -> list[str]:
        assert party.startswith("user-")
        await asyncio.sleep(3600)
        return []

    monkeypatch.setattr(Lookups, "addresses", silent)
    async with lone_api(control_dsn, webhook_lookup_timeout_seconds=0.1) as api:
        await created(await api.caller(), "https://example.com/")


async def test_a_team_has_so_many_endpoints_and_no_more(control_dsn: str) -> None:
    async with lone_api(control_dsn, webhook_endpoints_per_team=2) as api:
        caller, other = await api.caller(), await api.caller()
        answers = await asyncio.gather(*(caller.post("/webhook_endpoints", {"url": URL}) for _ in range(6)))
        assert sorted(answer.status_code for answer in answers) == [201, 201, 422, 422, 422, 422]
        key = str(uuid4())
        refused = body_of(await caller.post("/webhook_endpoints", {"url": URL}, key=key), 422)["error"]
        assert (refused["code"], refused["details"]) == ("endpoint_limit_reached", {"field": "team_id", "limit": 2})
        await created(other)
        # One that is revoked takes no room; the key that was refused keeps its answer.
        endpoint = data_of(await caller.get("/webhook_endpoints"))[0]["id"]
        data_of(await caller.delete(f"/webhook_endpoints/{endpoint}"))
        replay = body_of(await caller.post("/webhook_endpoints", {"url": URL}, key=key), 422)
        assert (replay["error"], replay["idempotency_replay"]) == (refused, True)
        body_of(await caller.post("/webhook_endpoints", {"url": URL}), 201)
        assert (await caller.post("/webhook_endpoints", {"url": URL})).status_code == 422


async def test_an_unknown_event_is_answered_with_those_that_there_are(lone: LoneApi) -> None:
    answer = await (await lone.caller()).post("/webhook_endpoints", {"url": URL, "events": ["database.exploded"]})
    message = body_of(answer, 422)["error"]["message"]
    assert "database.exploded" in message
    assert all(event in message for event in EventType)


async def test_nobody_elses(lone: LoneApi) -> None:
    owner, stranger = await lone.caller(), await lone.caller()
    endpoint = (await created(owner))["data"]["id"]
    assert data_of(await stranger.get("/webhook_endpoints")) == []
    assert (await stranger.get(f"/webhook_endpoints?starting_after={endpoint}")).status_code == 422
    for method, path in (
        ("DELETE", ""),
        ("POST", "/test_deliveries"),
        ("POST", "/secret_rotations"),
        ("GET", "/deliveries"),
        ("GET", "/deliveries/1"),
        ("POST", "/deliveries/1/retries"),
    ):
        for number in (endpoint, 2**62, 2**64, "0", "abc", "1.0"):
            answer = await stranger.request(method, f"/webhook_endpoints/{number}{path}", key=str(uuid4()))
            assert answer.status_code == 404, (method, path, number, answer.text)


async def test_scopes(lone: LoneApi) -> None:
    reader = await lone.caller(scopes=("webhooks:read",))
    writer = await lone.caller(scopes=("webhooks:write",))
    assert (await reader.post("/webhook_endpoints", {"url": URL})).status_code == 403
    assert (await writer.post("/webhook_endpoints", {"url": URL})).status_code == 201
    assert (await writer.get("/webhook_endpoints")).status_code == 403
    assert (await reader.get("/webhook_endpoints")).status_code == 200


async def test_changes_need_an_idempotency_key_and_a_test_needs_none(sending: LoneApi, receiving: Receiver) -> None:
    caller = await sending.caller()
    endpoint = (await created(caller, receiving.url()))["data"]["id"]
    for method, path in (("POST", ""), ("DELETE", f"/{endpoint}"), ("POST", f"/{endpoint}/secret_rotations")):
        answer = await caller.request(method, f"/webhook_endpoints{path}", json={"url": URL})
        assert body_of(answer, 422)["error"]["details"] == {"field": "Idempotency-Key"}
    assert (await caller.request("POST", f"/webhook_endpoints/{endpoint}/test_deliveries")).status_code == 200


async def test_pages(lone: LoneApi) -> None:
    caller = await lone.caller()
    made = [(await created(caller))["data"]["id"] for _ in range(5)]
    seen: list[int] = []
    page: dict[str, Any] = {"has_more": True}
    while page["has_more"]:
        after = f"&starting_after={seen[-1]}" if seen else ""
        page = body_of(await caller.get(f"/webhook_endpoints?limit=2{after}"))
        seen += [one["id"] for one in page["data"]]
    assert seen == made[::-1]
    for wrong in ("0", "x", str(2**64), str(made[-1] + 1000)):
        answer = await caller.get(f"/webhook_endpoints?starting_after={wrong}")
        assert body_of(answer, 422)["error"]["details"] == {"field": "starting_after"}


async def test_an_endpoint_is_changed(lone: LoneApi) -> None:
    caller, stranger, key = await lone.caller(), await lone.caller(), str(uuid4())
    made = (await created(caller, events=["database.deleted"]))["data"]
    path, other = f"/webhook_endpoints/{made['id']}", URL + "/new"
    changed = body_of(await caller.request("PATCH", path, key=key, json={"url": other}))
    assert changed["data"] == {**made, "url": other}
    again = body_of(await caller.request("PATCH", path, key=key, json={"url": other}))
    assert (again["data"], again["idempotency_replay"]) == (changed["data"], True)
    assert data_of(await caller.patch(path, {"events": []})) == {**made, "url": other, "events": []}
    for field, value in {"url": "https://127.0.0.1/", "events": ["no.such"]}.items():
        assert field_of(await caller.patch(path, {field: value})) == field
    assert data_of(await caller.get(path)) == {**made, "url": other, "events": []}
    error_of(await stranger.get(path), 404, "not_found")
    error_of(await stranger.patch(path, {"events": []}), 404, "not_found")
    body_of(await caller.delete(path))
    error_of(await caller.patch(path, {"events": []}), 404, "not_found")
