"""From a committed event to the receiver: what arrives, how often, and what is recorded of it."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from time import monotonic
from typing import Any

import pytest

from app.store.session import fetch
from tests.support.answers import body_of, data_of
from tests.support.client import Caller
from tests.support.moves import make_active
from tests.support.receiver import Received, Receiver, answer, hang, reset
from tests.support.signatures import verify
from tests.support.waiting import until
from tests.support.webhooks import WEBHOOKS, Delivering, deliveries, emit, path, subscribed

pytestmark = pytest.mark.usefixtures("running")


@pytest.fixture
async def caller(running: Delivering) -> Caller:
    return await running.api.caller()


async def ended(caller: Caller, endpoint: int, *, several: int = 1) -> list[dict[str, Any]]:
    """The deliveries once all are delivered or failed."""

    async def look() -> list[dict[str, Any]]:
        found = await deliveries(caller, endpoint)
        over = len(found) >= several and all(one["status"] != "pending" for one in found)
        return found if over else []

    return await until(look)


async def test_a_databases_life_is_delivered(running: Delivering, target: Receiver, caller: Caller) -> None:
    where = path()
    endpoint, secret = await subscribed(caller, target.url(where))
    made = body_of(await caller.create("orders"), 202)["data"]
    await make_active(made["uuid"])
    await ended(caller, endpoint, several=2)
    started, provisioned = sorted(target.of(where), key=lambda one: one.body[:40], reverse=True)
    for received, event, status in (
        (started, "database.provisioning_started", "provisioning"),
        (provisioned, "database.provisioned", "active"),
    ):
        verify(received, secret)
        assert received.headers["x-service-event"] == event
        assert received.headers["content-type"] == "application/json"
        body = json.loads(received.body)
        assert list(body) == ["event", "timestamp", "data"]
        assert (body["event"], body["data"]["object"], body["data"]["status"]) == (event, "database", status)
        assert body["data"]["uuid"] == made["uuid"]
        assert body["timestamp"].endswith("+00:00")
        assert "db_password" not in body["data"]
        assert made["db_password"].encode() not in received.body
    assert started.headers["webhook-id"] != provisioned.headers["webhook-id"]


async def test_delivered_at_once_and_recorded(target: Receiver, caller: Caller) -> None:
    where = path()
    accepted = answer(202, body=b"thank you")
    at_least = 0.0

    async def slowly(received: Received, writer: asyncio.StreamWriter) -> bytes | None:
        nonlocal at_least
        asked = monotonic()
        await asyncio.sleep(0.05)
        at_least = monotonic() - asked
        return await accepted(received, writer)

    target.replies[where] = slowly
    endpoint, _ = await subscribed(caller, target.url(where))
    emitted = monotonic()
    await emit(caller)
    (delivery,) = await ended(caller, endpoint)
    at_most = monotonic() - emitted
    assert {name: delivery[name] for name in delivery if name not in ("id", "created_at")} == {
        "object": "webhook_delivery",
        "endpoint_id": endpoint,
        "webhook_id": target.of(where)[0].headers["webhook-id"],
        "event_type": "database.provisioned",
        "status": "delivered",
        "response_code": 202,
        "error_message": None,
        "attempt_count": 1,
        "next_attempt_at": None,
    }
    attempts = data_of(await caller.get(f"/webhook_endpoints/{endpoint}/deliveries/{delivery['id']}"))["attempts"]
    (attempt,) = attempts
    assert (attempt["response_code"], attempt["error_message"]) == (202, None)
    assert attempt["response_body"] == "thank you"
    # In milliseconds: all that the receiver took, and no more than all that was waited here.
    assert 1000 * at_least - 1 <= attempt["duration_ms"] <= 1000 * at_most + 1
    (shown,) = data_of(await caller.get("/webhook_endpoints"))
    assert shown["last_success_at"]
    assert shown["last_failure_at"] is None


FAILING = {
    "500": (answer(500, body=b"x" * 100_000), 500, "answered 500"),
    "redirect": (answer(302, Location="https://127.0.0.1:1/"), 302, "not followed"),
    "hang": (hang, None, "No (answer|connection) within 1.5 s"),
    "reset": (reset, None, "connection was lost"),
}


@asynccontextmanager
async def hasty(running: Delivering) -> AsyncIterator[None]:
    """For the block a worker whose attempts have 1.5 s."""
    await running.kill(WEBHOOKS)
    await running.start(WEBHOOKS, WEBHOOK_TIMEOUT_SECONDS="1.5")
    try:
        yield
    finally:
        await running.kill(WEBHOOKS)
        await running.start(WEBHOOKS)


@pytest.mark.parametrize("behaviour", FAILING)
async def test_a_failing_receiver_gets_the_whole_schedule(
    running: Delivering, target: Receiver, caller: Caller, behaviour: str
) -> None:
    where = path()
    target.replies[where], code, words = FAILING[behaviour]
    endpoint, secret = await subscribed(caller, target.url(where))
    async with hasty(running) if behaviour == "hang" else nullcontext():
        await emit(caller)
        (delivery,) = await ended(caller, endpoint)
    assert (delivery["status"], delivery["attempt_count"], delivery["response_code"]) == ("failed", 4, code)
    assert re.search(words, delivery["error_message"])
    received = target.of(where)
    # Of 1.5 s a machine that stalls may need all to connect.
    assert (1 if behaviour == "hang" else 4) <= len(received) <= 4
    assert len({one.headers["webhook-id"] for one in received}) == 1
    assert len({one.body for one in received}) == 1
    for one in received:
        verify(one, secret)
    attempts = data_of(await caller.get(f"/webhook_endpoints/{endpoint}/deliveries/{delivery['id']}"))["attempts"]
    assert [attempt["response_code"] for attempt in attempts] == [code] * 4
    assert all(len(attempt["response_body"] or "") <= 2048 for attempt in attempts)


async def test_a_receiver_that_recovers_gets_it(target: Receiver, caller: Caller) -> None:
    where = path()
    target.replies[where] = answer(503)
    endpoint, _ = await subscribed(caller, target.url(where))
    await emit(caller)

    async def tried() -> bool:
        return bool(target.of(where))

    await until(tried)
    target.replies[where] = answer(200)
    (delivery,) = await ended(caller, endpoint)
    assert delivery["status"] == "delivered"
    assert delivery["error_message"] is None
    assert delivery["attempt_count"] == len(target.of(where)) >= 2


async def test_retry_after_is_waited_out(target: Receiver, caller: Caller) -> None:
    where = path()
    target.replies[where] = answer(429, Retry_After="2")
    endpoint, _ = await subscribed(caller, target.url(where))
    await emit(caller)

    async def tried_twice() -> bool:
        return len(target.of(where)) >= 2

    await until(tried_twice)
    first, second = target.of(where)[:2]
    assert second.at - first.at >= 2
    assert int(second.headers["webhook-timestamp"]) - int(first.headers["webhook-timestamp"]) >= 1
    await caller.delete(f"/webhook_endpoints/{endpoint}")


async def test_only_what_was_asked_for(target: Receiver, caller: Caller, running: Delivering) -> None:
    stranger = await running.api.caller()
    everything, deleted, other, theirs = path(), path(), path(), path()
    all_of_it, _ = await subscribed(caller, target.url(everything))
    await subscribed(caller, target.url(deleted), "database.deleted")
    chosen, _ = await subscribed(caller, target.url(other), "database.deleted", "database.provisioned")
    await subscribed(stranger, target.url(theirs))
    await emit(caller)
    await ended(caller, all_of_it)
    await ended(caller, chosen)
    assert (len(target.of(everything)), len(target.of(other))) == (1, 1)
    assert target.of(deleted) == target.of(theirs) == []


async def test_a_revoked_endpoint_gets_nothing_more(target: Receiver, caller: Caller) -> None:
    where = path()
    target.replies[where] = answer(429, Retry_After="60")
    endpoint, _ = await subscribed(caller, target.url(where))
    await emit(caller)

    async def tried() -> bool:
        (found,) = await deliveries(caller, endpoint) or [{"attempt_count": 0}]
        return bool(found["attempt_count"])

    await until(tried)
    body_of(await caller.delete(f"/webhook_endpoints/{endpoint}"))
    (delivery,) = await deliveries(caller, endpoint)
    assert (delivery["status"], delivery["next_attempt_at"]) == ("failed", None)
    assert "revoked" in delivery["error_message"]
    await emit(caller)

    async def dispatched() -> bool:
        return not await fetch("SELECT 1 FROM events WHERE dispatched_at IS NULL")

    await until(dispatched)
    assert len(await deliveries(caller, endpoint)) == 1
    assert len(target.of(where)) == 1


async def test_sent_again_on_request(target: Receiver, caller: Caller) -> None:
    where = path()
    target.replies[where] = answer(500)
    endpoint, secret = await subscribed(caller, target.url(where))
    await emit(caller)
    (failed,) = await ended(caller, endpoint)
    target.replies[where] = answer(200)
    retries = f"/webhook_endpoints/{endpoint}/deliveries/{failed['id']}/retries"
    asked = data_of(await caller.request("POST", retries), 202)
    assert (asked["id"], asked["status"], asked["attempt_count"]) == (failed["id"], "pending", 4)
    (again,) = await ended(caller, endpoint)
    assert (again["status"], again["attempt_count"], again["webhook_id"]) == ("delivered", 5, failed["webhook_id"])
    data_of(await caller.request("POST", retries), 202)

    async def six() -> bool:
        return len(target.of(where)) == 6

    await until(six)
    verify(target.of(where)[-1], secret)
    assert len({one.headers["webhook-id"] for one in target.of(where)}) == 1


async def test_asked_for_again_while_it_waits(target: Receiver, caller: Caller) -> None:
    where = path()
    target.replies[where] = answer(429, Retry_After="3600")
    endpoint, _ = await subscribed(caller, target.url(where))
    await emit(caller)

    async def tried() -> bool:
        found = await deliveries(caller, endpoint)
        return bool(found and found[0]["attempt_count"])

    await until(tried)
    target.replies[where] = answer(200)
    (waiting,) = await deliveries(caller, endpoint)
    data_of(await caller.request("POST", f"/webhook_endpoints/{endpoint}/deliveries/{waiting['id']}/retries"), 202)
    (delivered,) = await ended(caller, endpoint)
    assert (delivered["status"], delivered["attempt_count"]) == ("delivered", 2)
