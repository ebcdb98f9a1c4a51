"""Starting workflows in the background, in a process that must not wait for Temporal."""

import asyncio
import contextlib

import structlog
from temporalio.client import Client

from app.outbox.workflow_starts import PendingStart, release_to_relay, start

log = structlog.get_logger(__name__)


class Starter:
    """Starts workflows that a request has committed, without making the request wait. The relay starts those that
    fail."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._running: set[asyncio.Task[None]] = set()

    def start_soon(self, pending: PendingStart) -> None:
        task = asyncio.create_task(self._start(pending))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """Waits for the starts in progress; each has the time limit of one call."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _start(self, pending: PendingStart) -> None:
        try:
            await start(self._client, pending)
        except Exception as fault:
            # Temporal or our own database is unavailable. The row stays, and the relay starts the workflow.
            reason = str(fault) or type(fault).__name__
            log.warning("workflow_start_deferred", workflow_id=pending.workflow_id, reason=reason)
            with contextlib.suppress(Exception):
                await release_to_relay(pending, reason)
