"""Dispatches committed events from the outbox, within milliseconds: each becomes a delivery for every endpoint that
wants it."""

import asyncio

from app.core.settings import Settings
from app.outbox.events import CHANNEL
from app.store.notify import work_on_notices
from app.webhooks.dispatch import dispatch

_BATCH = 100


async def dispatch_events(settings: Settings, dispatched: asyncio.Event) -> None:
    """Runs until cancelled. Any number may run concurrently. Sets `dispatched` whenever an event or a notice says that
    deliveries may be due. Deliveries that become due by their time are for whoever makes them."""
    assert settings.control_dsn is not None

    async def look() -> bool:
        events = await dispatch(_BATCH, first_wait=settings.webhook_retry_schedule[0])
        if events:
            dispatched.set()
        return events == _BATCH

    async def follow_notice() -> bool:
        more = await look()
        # Without an event it is a delivery that is made again.
        dispatched.set()
        return more

    # What is not dispatched stays in the outbox.
    await work_on_notices(settings.control_dsn, CHANNEL, follow_notice, poll=look, failure="outbox_waiting")
