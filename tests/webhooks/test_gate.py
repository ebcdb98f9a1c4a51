"""How many attempts are under way at once: for one endpoint, and for all of a team's together."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from app.webhooks.gate import Gate, NoRoom


async def test_an_endpoint_has_its_share() -> None:
    gate = Gate(2)
    async with gate.entered(1, 1, patience=0.25), gate.entered(1, 1, patience=0.25):
        with pytest.raises(NoRoom):
            async with gate.entered(1, 1, patience=0.25):
                pass
        async with gate.entered(2, 1, patience=0.25):
            pass
    async with gate.entered(1, 1, patience=0.25), gate.entered(1, 1, patience=0.25):
        pass


async def test_a_team_has_the_share_of_eight_endpoints() -> None:
    gate = Gate(2)
    async with AsyncExitStack() as hanging:
        for place in range(16):
            await hanging.enter_async_context(gate.entered(place, 1, patience=0.25))
        with pytest.raises(NoRoom):
            async with gate.entered(100, 1, patience=0.25):
                pass
        async with gate.entered(101, 2, patience=0.25):
            pass
    async with gate.entered(100, 1, patience=0.25):
        pass
    assert not gate._teams


async def test_who_has_patience_gets_in() -> None:
    gate, there = Gate(1), asyncio.Event()

    async def patient() -> None:
        there.set()
        async with gate.entered(1, 1, patience=20):
            pass

    async with gate.entered(1, 1, patience=0.25):
        waiting = asyncio.create_task(patient())
        await there.wait()
    await waiting


async def test_who_waits_keeps_the_bound() -> None:
    """The last to leave must not take the lane from under those that wait for its place."""
    gate, most = Gate(1), 0
    under_way = 0

    async def attempt() -> None:
        nonlocal most, under_way
        async with gate.entered(1, 1, patience=0.25):
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.01)
            under_way -= 1

    await asyncio.gather(*(attempt() for _ in range(8)))
    assert most == 1
    assert not gate._lanes
