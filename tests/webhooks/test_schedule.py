"""The retry schedule over its three days: real attempts at a real receiver. The days pass in the records."""

import asyncio
from typing import Any

from app.core.secrets import SecretBox, new_key_setting
from app.core.settings import Settings
from app.store.session import fetch
from app.webhooks.attempts import Attempts
from app.webhooks.dispatch import dispatch
from app.webhooks.egress.sender import Sender
from tests.support.in_process import lone_api
from tests.support.receiver import Receiver, answer
from tests.support.waiting import LIMIT_SECONDS, until
from tests.support.webhooks import ALLOWED, emit, subscribed
from workers.deliveries import Deliveries

SCHEDULE = Settings().webhook_retry_schedule


async def test_ten_attempts_over_three_days(control_dsn: str, receiving: Receiver) -> None:
    settings = Settings(
        secret_keys=new_key_setting(),
        webhook_allow_cidrs=(ALLOWED,),
        webhook_ca_file=receiving.ca_file,
        webhook_timeout_seconds=LIMIT_SECONDS,
    )
    receiving.replies["/hook"] = answer(500)
    known: dict[str, Any] = {
        "secret_keys": settings.secret_keys,
        "webhook_allow_cidrs": settings.webhook_allow_cidrs,
        "webhook_ca_file": settings.webhook_ca_file,
    }
    sender = Sender(settings)
    async with lone_api(control_dsn, **known) as api:
        caller = await api.caller()
        await subscribed(caller, receiving.url("/hook"))
        await emit(caller)
        assert await dispatch(1, first_wait=SCHEDULE[0]) == 1
        attempts = Attempts(SecretBox.from_setting(settings.secret_keys), sender, settings)
        serving = asyncio.create_task(Deliveries(attempts, settings).serve())
        waits = [await attempted(number) for number in range(1, len(SCHEDULE) + 1)]
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        (row,) = await fetch("SELECT status, attempt_count FROM webhook_deliveries")
        (made,) = await fetch("SELECT next_attempt_at, claimed_until FROM webhook_endpoints")
    await sender.close()
    assert (row["status"], row["attempt_count"]) == ("failed", 10)
    assert len({got.headers["webhook-id"] for got in receiving.received}) == 1
    assert len(receiving.received) == len(SCHEDULE) == 10
    for wait, base in zip(waits, SCHEDULE[1:], strict=False):
        assert 0.8 * base - 1 <= wait <= 1.2 * base + 1
    assert 0.8 * sum(SCHEDULE) - 10 <= sum(waits) <= 1.2 * sum(SCHEDULE) + 10
    assert made["next_attempt_at"] is None, "nothing wakes for an endpoint for which nothing waits"


async def attempted(number: int) -> float:
    """Waits for the attempt, and lets the time until the next one pass; how long that is, in seconds."""

    async def recorded() -> bool:
        rows = await fetch(
            "SELECT 1 FROM webhook_deliveries d JOIN webhook_endpoints w ON w.id = d.endpoint_id"
            " WHERE attempt_count = $1 AND w.claimed_until IS NULL",
            number,
        )
        return bool(rows)

    await until(recorded)
    rows = await fetch(
        "SELECT extract(epoch FROM d.next_attempt_at - max(a.created_at))::float8 AS wait, w.next_attempt_at AS due,"
        " d.next_attempt_at FROM webhook_deliveries d JOIN webhook_endpoints w ON w.id = d.endpoint_id"
        " JOIN webhook_attempts a ON a.delivery_id = d.id GROUP BY d.id, w.id"
    )
    assert rows[0]["due"] == rows[0]["next_attempt_at"], "nobody looks before"
    await fetch("UPDATE webhook_deliveries SET next_attempt_at = now() WHERE waiting")
    await fetch("UPDATE webhook_endpoints SET next_attempt_at = now() WHERE next_attempt_at IS NOT NULL")
    return float(rows[0]["wait"] or 0)
