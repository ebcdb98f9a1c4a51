"""A refusal is an answer too: one original of it, whoever else asks."""

import asyncio

from app.store.session import fetch
from tests.support.answers import body_of, data_of
from tests.support.in_process import LoneApi


async def test_twenty_equal_requests_that_are_refused(lone: LoneApi) -> None:
    caller = await lone.caller(tier="free")
    data_of(await caller.create("only"), 202)
    answers = await asyncio.gather(*(caller.create("more", key="k") for _ in range(20)))
    refused = [answer.json() for answer in answers if answer.status_code == 422]
    assert {body["error"]["code"] for body in refused} == {"plan_limit_exceeded"}
    assert len([body for body in refused if "idempotency_replay" not in body]) == 1
    others = [answer.json()["error"]["code"] for answer in answers if answer.status_code != 422]
    assert set(others) <= {"idempotency_key_in_progress"}


async def test_refused_before_and_accepted_after_an_equal_request(lone: LoneApi) -> None:
    """While a place becomes free, equal requests get one answer between them, whichever it is."""
    for round_ in range(8):
        caller = await lone.caller(tier="free")
        uuid = data_of(await caller.create("only"), 202)["uuid"]
        asking = [asyncio.create_task(caller.create("more", key="k")) for _ in range(12)]
        await asyncio.sleep(0.004 * round_)
        await fetch("UPDATE databases SET status = 'deleted' WHERE uuid = $1", uuid)
        answers = [answer for answer in await asyncio.gather(*asking) if answer.status_code != 409]
        assert len({answer.status_code for answer in answers}) == 1
        originals = [answer for answer in answers if "idempotency_replay" not in answer.json()]
        assert len(originals) == 1
        final = await caller.create("more", key="k")
        assert body_of(final, answers[0].status_code)["idempotency_replay"] is True
