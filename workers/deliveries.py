"""Makes the attempts that waiting deliveries are due for: first ones that found no room, retries, and probes."""

import asyncio
import contextlib
from functools import partial
from uuid import UUID

import structlog

from app.core.ids import new_uuid
from app.core.limiter import Limiter
from app.core.settings import Settings
from app.webhooks import waiting
from app.webhooks.attempts import Attempts
from app.webhooks.waiting import ClaimedEndpoint, WaitingDelivery

_INTERVAL_SECONDS = 0.5
"""How often it looks for endpoints that are due."""
_SHORTEST_SECONDS = 0.02
_ENDPOINTS_AT_ONCE = 200
"""Most of them wait for a receiver, which costs nothing."""
_BATCH = 40
"""Deliveries to one endpoint before the others have their turn."""
_BUSY_AT_ONCE, _BUSY_OF_AN_ENDPOINT = 32, 2
"""Attempts that begin or end, so that first attempts, made in the same process, find it responsive."""
_BUSY_SECONDS = 0.25
"""An attempt under way for longer waits for its receiver."""
_REFUSED_SECONDS = 2.0
"""Before an endpoint that had no room is looked at again."""
_FAILED_SECONDS = 60.0
"""Before a delivery is tried again whose attempt failed on our own side."""

log = structlog.get_logger(__name__)


class WaitingDeliveries:
    """Any number of processes may serve them side by side."""

    def __init__(self, attempts: Attempts, settings: Settings) -> None:
        self._attempts = attempts
        self._at_once = settings.webhook_concurrency
        self._busy = Limiter[int](_BUSY_OF_AN_ENDPOINT, total=_BUSY_AT_ONCE)
        """By endpoint."""
        self._serving: dict[int, asyncio.Task[None]] = {}
        """By endpoint."""
        self._worker: UUID = new_uuid()

    async def serve(self) -> None:
        """Runs until cancelled."""
        renewing = asyncio.create_task(self._renew())
        try:
            while True:
                self._attempts.changed.clear()
                try:
                    await self._claim()
                except Exception as fault:
                    # Our own database is away. What is due stays due.
                    log.warning("deliveries_waiting", reason=str(fault) or type(fault).__name__)
                    await asyncio.sleep(_INTERVAL_SECONDS)
                await asyncio.sleep(_SHORTEST_SECONDS)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._attempts.changed.wait(), _INTERVAL_SECONDS)
        finally:
            tasks = [renewing, *self._serving.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _claim(self) -> None:
        room = _ENDPOINTS_AT_ONCE - len(self._serving)
        for endpoint in await waiting.claim(self._worker, room) if room > 0 else []:
            # A claim that expired, as while our database was away or this process was stopped, may be taken again in
            # the middle of serving: it goes on with that, and sends nothing twice.
            if endpoint.id not in self._serving:
                task = asyncio.create_task(self._serve(endpoint))
                self._serving[endpoint.id] = task
                task.add_done_callback(partial(self._served, endpoint.id))

    def _served(self, endpoint: int, _: asyncio.Task[None]) -> None:
        del self._serving[endpoint]
        self._attempts.changed.set()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(waiting.CLAIM_SECONDS / 3)
            if self._serving:
                try:
                    await waiting.renew(self._worker, list(self._serving))
                except Exception as fault:
                    log.warning("claims_not_renewed", reason=str(fault) or type(fault).__name__)

    async def _serve(self, endpoint: ClaimedEndpoint) -> None:
        try:
            due = await waiting.list_due(endpoint.id, 1 if endpoint.broken else _BATCH)
            refused = not await self._attempt(endpoint, due)
            await waiting.release(self._worker, endpoint.id, pause=_REFUSED_SECONDS if refused else 0)
        except Exception as fault:
            # The claim expires, and another takes the endpoint up.
            log.warning("endpoint_not_served", endpoint=endpoint.id, reason=str(fault) or type(fault).__name__)

    async def _attempt(self, endpoint: ClaimedEndpoint, due: list[WaitingDelivery]) -> bool:
        """Whether all were attempted. The first that finds no room, or a circuit that broke meanwhile, is the last."""
        left, refused = iter(due), asyncio.Event()

        async def attempt_some() -> None:
            for delivery in left:
                if not await self._attempt_one(endpoint, delivery):
                    refused.set()
                if refused.is_set():
                    return

        async with asyncio.TaskGroup() as group:
            for _ in range(min(len(due), self._at_once)):
                group.create_task(attempt_some())
        return not refused.is_set()

    async def _attempt_one(self, endpoint: ClaimedEndpoint, delivery: WaitingDelivery) -> bool:
        async with self._busy.slot(endpoint.id):
            making = self._attempts.make_next(delivery, worker=self._worker, probing=endpoint.broken)
            attempt = asyncio.create_task(making)
            await _wait(attempt)
        try:
            return await attempt
        except Exception as fault:
            log.warning("attempt_failed_here", delivery=delivery.id, reason=str(fault) or type(fault).__name__)
            return await self._postpone(delivery)

    async def _postpone(self, delivery: WaitingDelivery) -> bool:
        """False where our own database is away: what is under way for the same endpoint goes on all the same."""
        try:
            await waiting.postpone(delivery.id, _FAILED_SECONDS)
        except Exception as fault:
            log.warning("attempt_not_postponed", delivery=delivery.id, reason=str(fault) or type(fault).__name__)
            return False
        return True


async def _wait(attempt: asyncio.Task[bool]) -> None:
    try:
        await asyncio.wait({attempt}, timeout=_BUSY_SECONDS)
    except asyncio.CancelledError:
        attempt.cancel()
        raise
