"""Starting workflows in the background of a process that has better things to do than wait for Temporal."""

import asyncio
import contextlib

import structlog
from temporalio.client import Client

from app.outbox.workflow_starts import PendingStart, release_to_relay, start

log = structlog.get_logger(__name__)


class Starter:
    """Starts what a request has committed, without making the request wait. What it can't start, the relay
    does."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._running: set[asyncio.Task[None]] = set()

    def start_soon(self, pending: PendingStart) -> None:
        task = asyncio.create_task(self._start(pending))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """Lets what is under way finish; none of it takes longer than one call's time limit."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _start(self, pending: PendingStart) -> None:
        try:
            await start(self._client, pending)
        except Exception as fault:
            # Temporal or our own database is away. The row stays, and with it the promise: the relay keeps it.
            reason = str(fault) or type(fault).__name__
            log.warning("workflow_start_deferred", workflow_id=pending.workflow_id, reason=reason)
            with contextlib.suppress(Exception):
                await release_to_relay(pending, reason)
