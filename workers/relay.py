"""The relay: starts every workflow that a committed change asked for and nobody has started.

That is so when a process died between its commit and the start, or when Temporal was away.
"""

import asyncio

import structlog
from temporalio.client import Client
from temporalio.service import RPCError

from app.dispatch.starts import claim_due, note_failure, start

_INTERVAL_SECONDS = 0.25

log = structlog.get_logger(__name__)


async def relay(client: Client) -> None:
    """Runs until cancelled. Any number may run side by side."""
    while True:
        try:
            while await _relay_once(client):
                pass
        except Exception as fault:
            # Our own database is away. What is due stays due.
            log.warning("relay_waiting", reason=str(fault) or type(fault).__name__)
        await asyncio.sleep(_INTERVAL_SECONDS)


async def _relay_once(client: Client) -> bool:
    """Whether there was anything to do and all of it worked."""
    pending = await claim_due()
    worked = bool(pending)
    for one in pending:
        try:
            await start(client, one)
            log.info("workflow_started_by_relay", workflow_id=one.workflow_id)
        except (RPCError, RuntimeError, OSError) as fault:
            worked = False
            log.warning("workflow_start_failed", workflow_id=one.workflow_id, reason=str(fault))
            await note_failure(one, str(fault))
    return worked
