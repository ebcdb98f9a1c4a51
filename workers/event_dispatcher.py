"""Dispatches committed events from the outbox: creates their deliveries and starts the workflows, within
milliseconds."""

from functools import partial

import structlog
from temporalio.client import Client

from app.core.settings import Settings
from app.outbox.events import CHANNEL
from app.outbox.workflow_starts import release_to_relay, start_all
from app.store.notify import work_on_notices
from app.webhooks.dispatch import dispatch

_BATCH = 100

log = structlog.get_logger(__name__)


async def dispatch_events(client: Client, settings: Settings) -> None:
    """Runs until cancelled. Any number may run concurrently."""
    assert settings.control_dsn is not None
    # What is not dispatched stays in the outbox.
    await work_on_notices(
        settings.control_dsn, CHANNEL, partial(dispatch_batch, client, settings), failure="outbox_waiting"
    )


async def dispatch_batch(client: Client, settings: Settings) -> bool:
    """Returns whether there may be more. The relay starts what Temporal doesn't accept now."""
    batch = await dispatch(_BATCH, first_wait=settings.webhook_retry_schedule[0])
    if batch.starts:
        for one, fault in await start_all(client, batch.starts):
            log.warning("workflow_start_deferred", workflow_id=one.workflow_id, reason=str(fault))
            await release_to_relay(one, str(fault))
    return batch.events == _BATCH
