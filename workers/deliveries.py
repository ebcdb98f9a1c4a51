"""Makes the attempts of deliveries that are due: first attempts, retries, and probes."""

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
from workers.probe_pace import ProbePace

_INTERVAL_SECONDS = 0.5
"""How often to look for endpoints that are due."""
_SHORTEST_SECONDS = 0.02
_MAX_ENDPOINTS = 200
"""The most endpoints that are served at a time. Most of them wait for a receiver, which costs nothing."""
_BATCH = 40
"""Deliveries to one endpoint before other endpoints get their turn."""
_MAX_BUSY, _BUSY_OF_AN_ENDPOINT = 32, 2
"""Attempts that are beginning or ending, in all and for one endpoint, so that no endpoint slows down the others."""
_BUSY_SECONDS = 0.25
"""An attempt that runs longer is waiting for its receiver."""
_SLOW_SECONDS = 1.0
"""An attempt that runs longer goes on by itself, and its endpoint's other deliveries don't wait for it."""
_HOLD_SECONDS = 30.0
"""How long after the time that an attempt may take another is made in its place, should its process have died."""
_RENEWALS = 10
"""How often a claim may be renewed before it expires: each time, its endpoint's row may be locked."""
_REFUSED_SECONDS = 1.0
"""The pause before an endpoint that had no room is tried again."""
_FAILED_SECONDS = 60.0
"""The pause before a delivery is tried again whose attempt failed on our side."""

log = structlog.get_logger(__name__)


class Deliveries:
    """Serves endpoints that have deliveries due. Any number of processes may run this concurrently."""

    def __init__(self, attempts: Attempts, settings: Settings) -> None:
        self._attempts = attempts
        self._concurrency = settings.webhook_concurrency
        self._busy = Limiter[int](_BUSY_OF_AN_ENDPOINT, total=_MAX_BUSY)
        """By endpoint."""
        self._pace = ProbePace(settings.webhook_probes_per_second)
        self._hold_seconds = settings.webhook_timeout_seconds + _HOLD_SECONDS
        self._serving: dict[int, asyncio.Task[None]] = {}
        """By endpoint."""
        self._slow: set[asyncio.Task[None]] = set()
        """Attempts that go on by themselves."""
        self.changed = asyncio.Event()
        """Set when something may be due."""
        self._worker: UUID = new_uuid()

    async def serve(self) -> None:
        """Runs until cancelled."""
        renewing = asyncio.create_task(self._renew())
        try:
            while True:
                self.changed.clear()
                try:
                    await self._claim()
                except Exception as fault:
                    # Our own database is unavailable. What is due stays due.
                    log.warning("deliveries_waiting", reason=str(fault) or type(fault).__name__)
                    await asyncio.sleep(_INTERVAL_SECONDS)
                await asyncio.sleep(_SHORTEST_SECONDS)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_INTERVAL_SECONDS):
                        await self.changed.wait()
        finally:
            # What is broken off is made again when its time comes.
            tasks = [renewing, *self._serving.values(), *self._slow]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _claim(self) -> None:
        room = _MAX_ENDPOINTS - len(self._serving)
        claimed = await waiting.claim(self._worker, room, probes=self._pace.left) if room > 0 else []
        for endpoint in claimed:
            if endpoint.broken:
                self._pace.take()
            # A claim that expired, because our database was unavailable or this process was stopped, may be claimed
            # again while the endpoint is being served. That service continues, and sends nothing twice.
            if endpoint.id not in self._serving:
                task = asyncio.create_task(self._serve(endpoint))
                self._serving[endpoint.id] = task
                task.add_done_callback(partial(self._served, endpoint.id))

    def _served(self, endpoint: int, _: asyncio.Task[None]) -> None:
        del self._serving[endpoint]
        self.changed.set()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(waiting.CLAIM_SECONDS / _RENEWALS)
            if self._serving:
                try:
                    await waiting.renew(self._worker, list(self._serving))
                except Exception as fault:
                    log.warning("claims_not_renewed", reason=str(fault) or type(fault).__name__)

    async def _serve(self, endpoint: ClaimedEndpoint) -> None:
        try:
            due: list[WaitingDelivery] = []
            if endpoint.revoked:
                await waiting.end_revoked(endpoint.id)
            else:
                due = await waiting.list_due(endpoint.id, 1 if endpoint.broken else _BATCH)
            refused = not await self._attempt(endpoint, due)
            broken = await waiting.release(self._worker, endpoint.id, pause=_REFUSED_SECONDS if refused else 0)
            if endpoint.broken and broken is False:
                self._pace.give_back()
        except Exception as fault:
            # The claim expires, and another worker claims the endpoint.
            log.warning("endpoint_not_served", endpoint=endpoint.id, reason=str(fault) or type(fault).__name__)

    async def _attempt(self, endpoint: ClaimedEndpoint, due: list[WaitingDelivery]) -> bool:
        """Attempts these deliveries. Returns whether all were attempted: it stops at the first that finds no room or
        whose circuit has opened."""
        left, refused = iter(due), asyncio.Event()

        async def attempt_some() -> None:
            for delivery in left:
                if not await self._attempt_one(endpoint, delivery):
                    refused.set()
                if refused.is_set():
                    return

        async with asyncio.TaskGroup() as group:
            for _ in range(min(len(due), self._concurrency)):
                group.create_task(attempt_some())
        return not refused.is_set()

    async def _attempt_one(self, endpoint: ClaimedEndpoint, delivery: WaitingDelivery) -> bool:
        async with self._busy.slot(endpoint.id):
            making = self._attempts.make(delivery, worker=self._worker, probing=endpoint.broken)
            attempt = asyncio.create_task(making)
            await _wait(attempt, _BUSY_SECONDS)
        # Of a broken circuit nothing else is sent while its probe is under way.
        if not endpoint.broken:
            await _wait(attempt, _SLOW_SECONDS)
            if not attempt.done() and await self._leave(attempt, endpoint, delivery):
                return True
        try:
            return await attempt
        except Exception as fault:
            log.warning("attempt_failed_here", delivery=delivery.id, reason=str(fault) or type(fault).__name__)
            return await self._postpone(delivery)

    async def _leave(self, attempt: asyncio.Task[bool], endpoint: ClaimedEndpoint, delivery: WaitingDelivery) -> bool:
        """Lets the attempt go on by itself; should this process die, another is due later. Returns False when our own
        database is unavailable."""
        try:
            await waiting.hold(delivery, endpoint.id, seconds=self._hold_seconds)
        except asyncio.CancelledError:
            attempt.cancel()
            raise
        except Exception as fault:
            log.warning("attempt_not_left", delivery=delivery.id, reason=str(fault) or type(fault).__name__)
            return False
        going_on = asyncio.create_task(self._go_on(attempt, endpoint, delivery))
        self._slow.add(going_on)
        going_on.add_done_callback(self._slow.discard)
        return True

    async def _go_on(self, attempt: asyncio.Task[bool], endpoint: ClaimedEndpoint, delivery: WaitingDelivery) -> None:
        try:
            if not await attempt:
                # Nothing was sent: our own database had kept it until the claim was released. It is due as before.
                await waiting.hold(delivery, endpoint.id, seconds=0)
                self.changed.set()
        except Exception as fault:
            log.warning("attempt_not_recorded", delivery=delivery.id, reason=str(fault) or type(fault).__name__)

    async def _postpone(self, delivery: WaitingDelivery) -> bool:
        """Postpones a delivery. Returns False when our own database is unavailable; other attempts for the endpoint go
        on."""
        try:
            await waiting.postpone(delivery, _FAILED_SECONDS)
        except Exception as fault:
            log.warning("attempt_not_postponed", delivery=delivery.id, reason=str(fault) or type(fault).__name__)
            return False
        return True


async def _wait(attempt: asyncio.Task[bool], seconds: float) -> None:
    try:
        await asyncio.wait({attempt}, timeout=seconds)
    except asyncio.CancelledError:
        attempt.cancel()
        raise
