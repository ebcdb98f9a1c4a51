"""How many attempts are under way at once: for one endpoint, and for all of a team's together."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from app.core.limiter import LimitReached
from app.webhooks.attempt_slots import AttemptSlots
from tests.support.waiting import LIMIT_SECONDS


async def test_an_endpoint_has_its_share() -> None:
    slots = AttemptSlots(2)
    async with slots.slot(1, 1, patience=0.25), slots.slot(1, 1, patience=0.25):
        with pytest.raises(LimitReached):
            async with slots.slot(1, 1, patience=0.25):
                pass
        async with slots.slot(2, 1, patience=0.25):
            pass
    async with slots.slot(1, 1, patience=0.25), slots.slot(1, 1, patience=0.25):
        pass


async def test_a_team_has_the_share_of_eight_endpoints() -> None:
    slots = AttemptSlots(2)
    async with AsyncExitStack() as hanging:
        for place in range(16):
            await hanging.enter_async_context(slots.slot(place, 1, patience=0.25))
        with pytest.raises(LimitReached):
            async with slots.slot(100, 1, patience=0.25):
                pass
        async with slots.slot(101, 2, patience=0.25):
            pass
    async with slots.slot(100, 1, patience=0.25):
        pass
    assert len(slots) == 0


async def test_who_has_patience_gets_in() -> None:
    slots, there = AttemptSlots(1), asyncio.Event()

    async def patient() -> None:
        there.set()
        async with slots.slot(1, 1, patience=LIMIT_SECONDS):
            pass

    async with slots.slot(1, 1, patience=0.25):
        waiting = asyncio.create_task(patient())
        await there.wait()
    await waiting


async def test_who_waits_keeps_the_bound() -> None:
    """The last to leave must not take the lane from under those that wait for its place."""
    slots, most = AttemptSlots(1), 0
    under_way = 0

    async def attempt() -> None:
        nonlocal most, under_way
        async with slots.slot(1, 1, patience=LIMIT_SECONDS):
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            under_way -= 1

    await asyncio.gather(*(attempt() for _ in range(8)))
    assert most == 1
    assert len(slots) == 0
