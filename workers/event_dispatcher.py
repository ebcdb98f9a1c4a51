"""Dispatches committed events from the outbox, within milliseconds: each becomes a delivery for every endpoint that
wants it."""

import asyncio

from app.core.settings import Settings
from app.outbox.events import CHANNEL
from app.store.notify import work_on_notices
from app.webhooks.dispatch import dispatch

_BATCH = 100


async def dispatch_events(settings: Settings, dispatched: asyncio.Event) -> None:
    """Runs until cancelled. Any number may run concurrently. Sets `dispatched` whenever deliveries may be due."""
    assert settings.control_dsn is not None

    async def dispatch_batch() -> bool:
        events = await dispatch(_BATCH, first_wait=settings.webhook_retry_schedule[0])
        dispatched.set()
        return events == _BATCH

    # What is not dispatched stays in the outbox.
    await work_on_notices(settings.control_dsn, CHANNEL, dispatch_batch, failure="outbox_waiting")
