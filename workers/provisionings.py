"""Starts the provisionings of a region as soon as they are committed, a few at a time."""

from functools import partial

import structlog
from temporalio.client import Client

from app.core.settings import Settings
from app.outbox.provisionings import CHANNEL, RunningProvisionings, claim_pending
from app.outbox.workflow_starts import release_to_relay, start_all
from app.store.notify import work_on_notices

log = structlog.get_logger(__name__)


async def start_provisionings(client: Client, settings: Settings, region: str, running: RunningProvisionings) -> None:
    """Runs until cancelled. Any number may run concurrently, each in a process that serves the region's queue."""
    assert settings.control_dsn is not None
    # What is not started stays in its row.
    await work_on_notices(
        settings.control_dsn,
        CHANNEL,
        partial(start_some, client, region, running),
        failure="provisionings_waiting",
        payload=region,
        changed=running.changed(region),
        region=region,
    )


async def start_some(client: Client, region: str, running: RunningProvisionings) -> bool:
    """As many as there is room for; the end of one calls for more. What Temporal doesn't take now, the relay starts."""
    room = running.room(region)
    pending = await claim_pending(region, room) if room > 0 else []
    for one in pending:
        running.begin(region, one.workflow_id)
    for one, fault in await start_all(client, pending) if pending else []:
        log.warning("workflow_start_deferred", workflow_id=one.workflow_id, reason=str(fault))
        await release_to_relay(one, str(fault))
        running.end(one.workflow_id)
    return False
