"""What is done again and again beside other work."""

import asyncio

from app.core import background
from app.core.background import repeating
from tests.support.logs import logged_by
from tests.support.waiting import until


async def test_it_is_repeated_until_the_block_ends_whatever_it_raises() -> None:
    looks = 0

    async def look() -> None:
        nonlocal looks
        looks += 1
        raise ValueError("away")

    before = asyncio.all_tasks()
    with logged_by(background) as lines:
        async with repeating(look, 0.001, failure="not_seen", place="here"):
            await until(lambda: looks >= 3)
    assert asyncio.all_tasks() == before
    assert {"event": "not_seen", "reason": "away", "place": "here", "log_level": "info"} in lines


async def test_it_begins_with_a_pause_or_at_once() -> None:
    looked = asyncio.Event()

    async def look() -> None:
        looked.set()

    async with repeating(look, 3600, failure="not_seen"):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert not looked.is_set()
    async with repeating(look, 3600, failure="not_seen", at_once=True):
        await looked.wait()
