"""Nothing is lost while the webhook worker is killed, and no receiver costs another one anything."""

import asyncio
import logging
import os
import statistics

import pytest

from tests.support.receiver import Receiver, answer, hang
from tests.support.waiting import until
from tests.support.webhook_storm import Storm, kill_again_and_again
from tests.support.webhooks import Delivering, emit, path, subscribed

log = logging.getLogger(__name__)


async def storm(running: Delivering, target: Receiver, *, events: int, rate: float, kills: int, pause: float) -> Storm:
    made = Storm(await running.api.caller(), target)
    await made.prepare()
    raining = asyncio.create_task(made.rain(events, rate))
    await kill_again_and_again(running, kills, pause)
    await raining
    await made.all_fine(timeout=60 + events)
    twice = made.check()
    waits = sorted(made.arrivals().values())
    log.info(
        "%d events, %d kills: p50 %.0f ms, p95 %.0f ms, max %.0f ms, %d arrived twice",
        *(events, kills, 1000 * statistics.median(waits), 1000 * waits[int(0.95 * len(waits))], 1000 * waits[-1]),
        twice,
    )
    assert (await made.statuses("fine")).get("failed") is None
    return made


async def test_a_killed_worker_loses_nothing(running: Delivering, target: Receiver) -> None:
    made = await storm(running, target, events=40, rate=15, kills=2, pause=1)

    async def all_recorded() -> bool:
        return await made.statuses("fine") == {"delivered": 40}

    await until(all_recorded)
    for behaviour in ("500", "resetting"):
        ended = f"{behaviour}: {await made.statuses(behaviour)}"
        assert "delivered" not in ended


async def test_a_receiver_that_hangs_costs_others_nothing(running: Delivering, target: Receiver) -> None:
    """Forty deliveries to receivers that hang stand before each of the good one's."""
    caller, good = await running.api.caller(), path()
    target.replies[good] = answer(200)
    for _ in range(4):
        where = path()
        target.replies[where] = hang
        await subscribed(caller, target.url(where), "database.deleted", "database.provisioned")
    await subscribed(caller, target.url(good), "database.provisioned")
    for _ in range(10):
        await emit(caller)

    async def arrived() -> bool:
        return len(target.of(good)) == 10

    await until(arrived)


@pytest.mark.soak
async def test_two_thousand_events_for_five_receivers_and_ten_kills(running: Delivering, target: Receiver) -> None:
    events, rate = int(os.environ.get("STORM_EVENTS", "2000")), float(os.environ.get("STORM_RATE", "20"))
    await storm(running, target, events=events, rate=rate, kills=10, pause=events / rate / 12)
