"""Takes up the provisionings of a region as soon as they are committed, a few at a time."""

import asyncio
import contextlib

import structlog
from temporalio.client import Client

from app.core.settings import Settings
from app.outbox.provisionings import CHANNEL, RunningProvisionings, claim_pending
from app.outbox.workflow_starts import release_to_relay, start_all
from app.store.notify import listen

_FALLBACK_SECONDS = 0.5
"""How often it looks by itself, for the notices lost while the listener was away."""

log = structlog.get_logger(__name__)


async def start_provisionings(client: Client, settings: Settings, region: str, running: RunningProvisionings) -> None:
    """Runs until cancelled. Any number may run side by side, each in a process that serves the region's queue."""
    assert settings.control_dsn is not None
    changed = running.changed(region)

    def heard(of: str) -> None:
        if of == region:
            changed.set()

    listener = asyncio.create_task(listen(settings.control_dsn, CHANNEL, heard))
    try:
        while True:
            changed.clear()
            try:
                await start_some(client, region, running)
            except Exception as fault:
                # Our own database is away. What was promised stays so.
                log.warning("provisionings_waiting", region=region, reason=str(fault) or type(fault).__name__)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), _FALLBACK_SECONDS)
    finally:
        listener.cancel()


async def start_some(client: Client, region: str, running: RunningProvisionings) -> None:
    """As many as there is room for. What Temporal doesn't take now, the relay starts."""
    room = running.room(region)
    pending = await claim_pending(region, room) if room > 0 else []
    for one in pending:
        running.begin(region, one.workflow_id)
    for one, fault in await start_all(client, pending) if pending else []:
        log.warning("workflow_start_deferred", workflow_id=one.workflow_id, reason=str(fault))
        await release_to_relay(one, str(fault))
        running.end(one.workflow_id)
