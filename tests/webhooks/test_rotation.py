"""Replacing a signing secret: both sign for a while, then the new one alone."""

import hashlib
import hmac
from uuid import uuid4

from app.store.session import fetch
from tests.support.answers import body_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.receiver import Received, Receiver
from tests.support.signatures import standard, verify
from tests.support.webhooks import subscribed


async def pinged(caller: Caller, endpoint: int, receiving: Receiver) -> Received:
    answered = await caller.request("POST", f"/webhook_endpoints/{endpoint}/test_deliveries")
    assert answered.json()["data"]["status"] == "delivered", answered.text
    return receiving.received[-1]


async def rotated(caller: Caller, endpoint: int, *, key: str | None = None) -> str:
    body = body_of(await caller.post(f"/webhook_endpoints/{endpoint}/secret_rotations", None, key=key), 201)
    assert body["data"]["id"] == endpoint
    secret: str = body["secret"]
    return secret


async def test_both_sign_until_the_overlap_ends(sending: LoneApi, receiving: Receiver) -> None:
    caller = await sending.caller()
    endpoint, first = await subscribed(caller, receiving.url())
    assert "x-service-signature-previous" not in (await pinged(caller, endpoint, receiving)).headers
    second = await rotated(caller, endpoint)
    assert second != first
    during = await pinged(caller, endpoint, receiving)
    verify(during, second)
    assert during.headers["webhook-signature"].split(" ") == [standard(during, second), standard(during, first)]
    previous = hmac.new(first.encode(), during.body, hashlib.sha256).hexdigest()
    assert during.headers["x-service-signature-previous"] == f"sha256={previous}"
    await fetch("UPDATE webhook_secrets SET expires_at = now() - interval '1 second' WHERE expires_at IS NOT NULL")
    after = await pinged(caller, endpoint, receiving)
    verify(after, second)
    assert after.headers["webhook-signature"] == standard(after, second)
    assert "x-service-signature-previous" not in after.headers


async def test_the_old_one_is_kept_for_a_day(sending: LoneApi, receiving: Receiver) -> None:
    caller = await sending.caller()
    endpoint, _ = await subscribed(caller, receiving.url())
    await rotated(caller, endpoint)
    rows = await fetch("SELECT extract(epoch FROM expires_at - now()) AS left FROM webhook_secrets ORDER BY id")
    assert 86_000 < float(rows[0]["left"]) <= 86_400
    assert rows[1]["left"] is None


async def test_a_lost_answer_is_got_again(sending: LoneApi, receiving: Receiver) -> None:
    caller, key = await sending.caller(), str(uuid4())
    endpoint, _ = await subscribed(caller, receiving.url())
    secret = await rotated(caller, endpoint, key=key)
    assert await rotated(caller, endpoint, key=key) == secret
    assert len(await fetch("SELECT 1 FROM webhook_secrets")) == 2


async def test_a_rotation_within_the_overlap_keeps_all_that_still_sign(sending: LoneApi, receiving: Receiver) -> None:
    caller = await sending.caller()
    endpoint, first = await subscribed(caller, receiving.url())
    second, third = await rotated(caller, endpoint), await rotated(caller, endpoint)
    received = await pinged(caller, endpoint, receiving)
    verify(received, third)
    wanted = [standard(received, secret) for secret in (third, second, first)]
    assert received.headers["webhook-signature"].split(" ") == wanted


async def test_no_more_than_four_sign(sending: LoneApi, receiving: Receiver) -> None:
    caller = await sending.caller()
    endpoint, _ = await subscribed(caller, receiving.url())
    secrets = [await rotated(caller, endpoint) for _ in range(10)]
    received = await pinged(caller, endpoint, receiving)
    verify(received, secrets[-1])
    wanted = [standard(received, secret) for secret in secrets[:-5:-1]]
    assert received.headers["webhook-signature"].split(" ") == wanted
    in_force = await fetch("SELECT 1 FROM webhook_secrets WHERE expires_at IS NULL OR expires_at > now()")
    assert len(in_force) == 4
