"""The relay: starts every requested workflow that nobody has started.

That happens when a process died between its commit and the start, or when Temporal was unavailable.
"""

from collections.abc import Sequence

import structlog
from temporalio.client import Client

from app.operations.progress import note_started, note_unstarted
from app.outbox.starting import start_all
from app.outbox.workflow_starts import claim_due, record_failure
from workers.due import repeat

_INTERVAL_SECONDS = 0.25

log = structlog.get_logger(__name__)


async def relay(client: Client) -> None:
    """Runs until cancelled. Any number may run concurrently."""

    async def look() -> None:
        while await _relay_once(client):
            pass

    await repeat(look, _INTERVAL_SECONDS, failure="relay_waiting")


async def _record_starts(tried: Sequence[str], failed: Sequence[str]) -> None:
    """Has the operations say that they wait for these workflows to be started, or no longer."""
    await note_unstarted(failed)
    await note_started([one for one in tried if one not in failed])


async def _relay_once(client: Client) -> bool:
    """Returns whether there was anything to start and all of it was started."""
    pending = await claim_due()
    failed = await start_all(client, pending) if pending else []
    if pending:
        await _record_starts([one.workflow_id for one in pending], [one.workflow_id for one, _ in failed])
    for one, fault in failed:
        log.warning("workflow_start_failed", workflow_id=one.workflow_id, reason=str(fault))
        await record_failure(one, str(fault))
    if started := len(pending) - len(failed):
        log.info("workflows_started_by_relay", count=started)
    return bool(pending) and not failed
