"""When the dispatcher calls for the making of deliveries."""

import asyncio
import contextlib

import pytest

from app.core.settings import Settings
from app.outbox.events import CHANNEL
from app.store.session import fetch
from app.webhooks import dispatch
from tests.support.store import store
from tests.support.waiting import LIMIT_SECONDS, until
from workers import event_dispatcher


class CountedEvent(asyncio.Event):
    count = 0

    def set(self) -> None:
        self.count += 1
        super().set()


async def test_a_look_that_finds_nothing_calls_for_nothing(control_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, due = 0, CountedEvent()

    async def counted(limit: int, *, first_wait: float) -> int:
        nonlocal looks
        looks += 1
        return await dispatch.dispatch(limit, first_wait=first_wait)

    monkeypatch.setattr(event_dispatcher, "dispatch", counted)
    async with store(control_dsn):
        dispatching = asyncio.create_task(event_dispatcher.dispatch_events(Settings(control_dsn=control_dsn), due))
        # Once at first, and once when it has begun to listen: something may have been missed.
        await until(lambda: due.count == 2)
        due.clear()
        seen = looks
        await until(lambda: looks >= seen + 2)
        assert not due.is_set()
        # A delivery that is made again has no new event.
        await fetch("SELECT pg_notify($1, '')", CHANNEL)
        await asyncio.wait_for(due.wait(), LIMIT_SECONDS)
        dispatching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await dispatching
