"""What the sweep removes of webhooks and what it leaves, and what the consistency check finds."""

from datetime import timedelta
from typing import Any

from app.store.session import fetch
from app.webhooks.dispatch import dispatch
from app.webhooks.upkeep import RULES, SWEEPS
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.receiver import Receiver
from tests.support.webhooks import emit, subscribed

PATIENCE = timedelta(minutes=1)


async def dispatch_all() -> None:
    await dispatch(1000, first_wait=0)


async def age(table: str, *columns: str) -> None:
    moved = ", ".join(f"{column} = {column} - interval '31 days'" for column in columns)
    await fetch(f"UPDATE {table} SET {moved}")


async def left(table: str) -> int:
    return int((await fetch(f"SELECT count(*) FROM {table}"))[0]["count"])


async def found() -> list[tuple[str, str]]:
    rows: list[Any] = [row for rule in RULES for row in await fetch(rule, PATIENCE)]
    assert all(row["detail"] for row in rows)
    return [(row["rule"], row["subject"]) for row in rows]


async def told(caller: Caller) -> int:
    """An endpoint with one delivery."""
    endpoint, _ = await subscribed(caller, "https://192.0.2.1.example.com/")
    await emit(caller)
    await dispatch_all()
    return endpoint


async def test_old_events_go_with_all_that_hangs_on_them(lone: LoneApi) -> None:
    caller = await lone.caller()
    await told(caller)
    await fetch("INSERT INTO webhook_attempts (delivery_id, duration_ms) SELECT id, 1 FROM webhook_deliveries")
    (_, events), *_ = SWEEPS
    await age("events", "created_at", "dispatched_at")
    assert await fetch(events, 500) == []  # its delivery is pending
    await fetch("UPDATE webhook_deliveries SET status = 'failed', finished_at = now()")
    assert await fetch(events, 500) == []  # it was asked for again lately
    await age("webhook_deliveries", "finished_at")
    assert len(await fetch(events, 500)) == 1
    assert [await left(name) for name in ("events", "webhook_deliveries", "webhook_attempts")] == [0, 0, 0]
    await emit(caller)
    await age("events", "created_at")
    assert await fetch(events, 500) == []  # nobody was told of it yet


async def test_old_pings_and_expired_secrets_go(sending: LoneApi, receiving: Receiver) -> None:
    caller = await sending.caller()
    endpoint, _ = await subscribed(caller, receiving.url())
    data_of(await caller.request("POST", f"/webhook_endpoints/{endpoint}/test_deliveries"))
    await caller.post(f"/webhook_endpoints/{endpoint}/secret_rotations", None)
    _, (_, pings), (_, secrets) = SWEEPS
    assert await fetch(pings, 500) == await fetch(secrets, 500) == []
    await age("webhook_deliveries", "finished_at")
    await age("webhook_secrets", "expires_at")
    assert len(await fetch(pings, 500)) == len(await fetch(secrets, 500)) == 1
    assert await left("webhook_secrets") == 1


async def test_what_the_check_finds(lone: LoneApi) -> None:
    caller = await lone.caller()
    await told(caller)
    assert await found() == []
    await emit(caller)
    await fetch("UPDATE events SET created_at = now() - interval '5 minutes' WHERE dispatched_at IS NULL")
    (waiting,) = await fetch("SELECT uuid::text FROM events WHERE dispatched_at IS NULL")
    assert await found() == [("event_not_dispatched", waiting["uuid"])]
    await fetch("UPDATE events SET dispatched_at = now() - interval '4 minutes' WHERE dispatched_at IS NULL")
    await fetch("UPDATE webhook_endpoints SET created_at = now() - interval '1 hour'")
    assert await found() == [("event_without_delivery", waiting["uuid"])]
    await fetch("UPDATE webhook_endpoints SET events = '{database.deleted}'")
    assert await found() == []
    await fetch("UPDATE webhook_deliveries SET next_attempt_at = now() - interval '1 hour'")
    (delivery,) = await fetch("SELECT id::text FROM webhook_deliveries")
    assert await found() == [("delivery_stuck", delivery["id"])]
    await fetch("UPDATE webhook_deliveries SET status = 'failed'")
    assert await found() == []
