"""An idempotency key lives for 24 hours, to the second. Interface specification, section 4.13."""

from datetime import timedelta

from app.store.session import fetch
from tests.support.answers import body_of, data_of, error_of
from tests.support.in_process import LoneApi

DAY = timedelta(hours=24)


async def age(by: timedelta) -> None:
    """As if the key had been used first so long ago."""
    await fetch(
        "UPDATE idempotency_keys SET created_at = created_at - $1::interval, expires_at = expires_at - $1::interval", by
    )


async def test_just_before_and_just_after(lone: LoneApi) -> None:
    caller = await lone.caller()
    first = data_of(await caller.create("a", key="k"), 202)
    await age(DAY - timedelta(minutes=10))
    assert body_of(await caller.create("a", key="k"), 202)["idempotency_replay"] is True
    error_of(await caller.create("b", key="k"), 409, "idempotency_key_conflict")
    await age(timedelta(minutes=10))
    second = body_of(await caller.create("b", key="k"), 202)
    assert second["data"]["uuid"] != first["uuid"]
    assert second["data"]["name"] == "b"


async def test_a_replay_lengthens_nothing_and_an_expired_key_begins_anew(lone: LoneApi) -> None:
    caller = await lone.caller()
    for _ in range(2):
        await caller.create("a", key="k")
        await age(timedelta(hours=13))
        await caller.create("a", key="k")
    assert len(await fetch("SELECT 1 FROM databases")) == 2
    (row,) = await fetch("SELECT expires_at - created_at AS life FROM idempotency_keys")
    assert row["life"] == DAY


async def test_taking_up_a_dead_requests_work_lengthens_nothing_either(lone: LoneApi) -> None:
    caller = await lone.caller()
    first = data_of(await caller.create("a", key="k"), 202)
    await age(timedelta(hours=23))
    await fetch("UPDATE idempotency_keys SET response_status = NULL, response_sealed = NULL, locked_until = now()")
    assert data_of(await caller.create("a", key="k"), 202)["uuid"] == first["uuid"]
    (row,) = await fetch("SELECT expires_at - created_at AS life FROM idempotency_keys")
    assert row["life"] == DAY
