"""The test delivery: one signed request while the caller waits, and the truth about how it went."""

import asyncio
import json
import math

from app.core.secrets import new_key_setting
from tests.support.answers import body_of, data_of, field_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi, lone_api
from tests.support.receiver import Receiver, answer, held
from tests.support.signatures import verify
from tests.support.waiting import LIMIT_SECONDS, until
from tests.support.webhooks import ALLOWED, deliveries, subscribed


async def ping(caller: Caller, endpoint: int) -> dict[str, object]:
    answered = await caller.request("POST", f"/webhook_endpoints/{endpoint}/test_deliveries")
    data: dict[str, object] = data_of(answered)
    return data


async def test_a_ping_that_arrives(sending: LoneApi, receiving: Receiver) -> None:
    caller = await sending.caller()
    endpoint, secret = await subscribed(caller, receiving.url("/hook"), "database.deleted")
    receiving.replies["/hook"] = answer(204)
    sent = await ping(caller, endpoint)
    (received,) = receiving.received
    verify(received, secret)
    assert received.headers["x-service-event"] == "ping"
    assert received.headers["webhook-id"] == sent["webhook_id"]
    body = json.loads(received.body)
    assert list(body) == ["event", "timestamp", "data"]
    assert (body["event"], body["data"]["object"], body["data"]["id"]) == ("ping", "webhook_endpoint", endpoint)
    assert secret.encode() not in received.body
    wanted = {
        "object": "webhook_delivery",
        "endpoint_id": endpoint,
        "event_type": "ping",
        "status": "delivered",
        "response_code": 204,
        "error_message": None,
        "attempt_count": 1,
        "next_attempt_at": None,
    }
    assert sent.items() >= wanted.items()
    assert await deliveries(caller, endpoint) == [sent]
    listed = f"/webhook_endpoints/{endpoint}/deliveries"
    assert data_of(await caller.get(f"{listed}/{sent['id']}"))["request_body"] == received.body.decode()
    for asked, found in {"status=delivered": [sent], "status=failed": [], "event_type=ping": [sent]}.items():
        name, _, value = asked.partition("=")
        assert data_of(await caller.get(listed, params={name: value})) == found
    assert data_of(await caller.get(listed, params={"status": "delivered", "event_type": "backup.failed"})) == []
    assert field_of(await caller.get(listed, params={"status": "lost"})) == "status"
    assert field_of(await caller.get(listed, params={"event_type": "lost"})) == "event_type"
    assert data_of(await caller.get("/webhook_endpoints"))[0]["last_success_at"]


async def test_a_ping_that_is_refused_or_goes_nowhere(sending: LoneApi, receiving: Receiver) -> None:
    caller = await sending.caller()
    endpoint, _ = await subscribed(caller, receiving.url("/hook"))
    receiving.replies["/hook"] = answer(500, body=b"broken")
    refused = await ping(caller, endpoint)
    assert (refused["status"], refused["response_code"], refused["attempt_count"]) == ("failed", 500, 1)
    shown = data_of(await caller.get(f"/webhook_endpoints/{endpoint}/deliveries/{refused['id']}"))
    assert shown["attempts"][0]["response_body"] == "broken"
    gone, _ = await subscribed(caller, "https://127.0.0.1:1/")
    lost = await ping(caller, gone)
    assert (lost["status"], lost["response_code"]) == ("failed", None)
    assert lost["error_message"] == "No connection: Connection refused."


async def test_a_ping_passes_the_guard(receiving: Receiver, control_dsn: str) -> None:
    """Of an endpoint whose address was allowed when it was made, and isn't any more."""
    known = {
        "secret_keys": new_key_setting(),
        "webhook_ca_file": receiving.ca_file,
        "webhook_timeout_seconds": LIMIT_SECONDS,
    }
    async with lone_api(control_dsn, webhook_allow_cidrs=(ALLOWED,), **known) as open_api:
        caller = await open_api.caller()
        endpoint, _ = await subscribed(caller, receiving.url())
        assert (await ping(caller, endpoint))["status"] == "delivered"
    async with lone_api(control_dsn, **known) as strict:
        again = Caller(strict.http, caller.api_key, caller.user_id, caller.team_id, caller.key_id)
        refused = await ping(again, endpoint)
    assert (refused["status"], refused["response_code"]) == ("failed", None)
    assert "not public" in str(refused["error_message"])
    assert receiving.connections == 1


async def test_pings_to_a_receiver_that_hangs_are_bounded(control_dsn: str, receiving: Receiver) -> None:
    """For an endpoint, and for a team that has many."""
    known = {
        "webhook_allow_cidrs": (ALLOWED,),
        "webhook_ca_file": receiving.ca_file,
        "webhook_timeout_seconds": LIMIT_SECONDS,
    }
    let_go = asyncio.Event()
    async with lone_api(control_dsn, **known) as api:
        caller, other = await api.caller(), await api.caller()
        receiving.replies["/dead"] = held(answer(200), let_go)
        endpoints = [(await subscribed(caller, receiving.url("/dead")))[0] for _ in range(5)]
        fine, _ = await subscribed(caller, receiving.url("/fine"))
        theirs, _ = await subscribed(other, receiving.url("/fine"))

        async def sent(endpoint: int) -> int:
            answered = await caller.request("POST", f"/webhook_endpoints/{endpoint}/test_deliveries")
            return answered.status_code

        four = [asyncio.create_task(sent(endpoints[0])) for _ in range(4)]

        def each_is_sent_or_refused() -> bool:
            return len(receiving.of("/dead")) + sum(one.done() for one in four) == 4

        await until(each_is_sent_or_refused)
        let_go.set()
        assert sorted(await asyncio.gather(*four)) == [200, 200, 429, 429]
        let_go.clear()
        hanging = [asyncio.create_task(sent(endpoint)) for endpoint in endpoints for _ in range(2)]

        async def eight_more() -> bool:
            return len(receiving.of("/dead")) == 2 + 8

        await until(eight_more)
        refused = await caller.request("POST", f"/webhook_endpoints/{fine}/test_deliveries")
        error = body_of(refused, 429)["error"]
        assert (error["code"], error["details"]) == ("pings_under_way", {"endpoint_id": fine})
        assert refused.headers["retry-after"] == str(math.ceil(LIMIT_SECONDS))
        assert (await ping(other, theirs))["status"] == "delivered"
        let_go.set()
        assert sorted(await asyncio.gather(*hanging)) == [200] * 8 + [429] * 2
        assert (await ping(caller, fine))["status"] == "delivered"
