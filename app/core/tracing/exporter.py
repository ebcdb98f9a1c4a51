"""Sends spans to a collector, in the background: bounded in memory and in time, whatever the collector does.

OTLP over HTTP: https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

import asyncio
import gzip
import random
import ssl
import uuid
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

import httpcore
import structlog

from app.core.metrics.counters import TRACE_SPANS
from app.core.tracing.encoding import encoded_request, encoded_resource, encoded_scope
from app.core.tracing.sampling import sampler_of
from app.core.tracing.settings import TracingSettings
from app.core.tracing.spans import Tracer, TraceSpan

CLOSE_SECONDS = 2.0
"""How long the process goes on sending what is left when it ends."""
_ATTEMPTS = 5
"""How often sending a batch is tried, with pauses that double. Then the batch is dropped, so that newer ones are
sent."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 15.0
_RETRYABLE = frozenset({429, 502, 503, 504})
_READ_BYTES = 64 * 1024
"""How much of an answer is read, so that the connection can serve again."""
_VERSION = version("headwater")

log = structlog.get_logger(__name__)


class SpanExporter:
    """The spans of one process, on their way to the collector."""

    def __init__(self, settings: TracingSettings, process: str) -> None:
        """`process` is the service's name unless a setting says another."""
        self._settings = settings
        self._waiting: deque[TraceSpan] = deque()
        self._enough = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._resource = encoded_resource(
            {
                "service.name": process,
                "service.version": _VERSION,
                "service.instance.id": str(uuid.uuid4()),
                "telemetry.sdk.language": "python",
                "telemetry.sdk.name": "headwater",
                "telemetry.sdk.version": _VERSION,
                **dict(settings.resource),
                **({"service.name": settings.service_name} if settings.service_name else {}),
            }
        )
        self._scope = encoded_scope("headwater", _VERSION)
        self._failing = False
        self._dropped = TRACE_SPANS.labels("dropped")
        self._sent = TRACE_SPANS.labels("sent")

    def put(self, span: TraceSpan) -> None:
        """Takes a span that has ended, from any thread."""
        if len(self._waiting) >= self._settings.queue:
            self._dropped.inc()
            return
        self._waiting.append(span)
        if len(self._waiting) == self._settings.batch and self._loop is not None:
            self._loop.call_soon_threadsafe(self._enough.set)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Sends spans during the block, and after it, for a short time, what is left."""
        self._loop = asyncio.get_running_loop()
        async with httpcore.AsyncConnectionPool(
            ssl_context=_context(self._settings), max_connections=1, retries=0
        ) as pool:
            sending = asyncio.create_task(self._send_all(pool))
            try:
                yield
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
                await self._send_rest(pool)
                self._loop = None

    async def _send_all(self, pool: httpcore.AsyncConnectionPool) -> None:
        while True:
            try:
                async with asyncio.timeout(self._settings.delay):
                    await self._enough.wait()
            except TimeoutError:
                pass
            self._enough.clear()
            while self._waiting:
                await self._send_batch(pool)

    async def _send_rest(self, pool: httpcore.AsyncConnectionPool) -> None:
        spans: list[TraceSpan] = []
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                while self._waiting:
                    spans = self._take()
                    await self._post(pool, spans)
                    self._sent.inc(len(spans))
        except Exception as fault:
            self._dropped.inc(len(spans) + len(self._waiting))
            self._waiting.clear()
            log.warning("spans_not_sent", reason=_words(fault))

    def _take(self) -> list[TraceSpan]:
        return [self._waiting.popleft() for _ in range(min(len(self._waiting), self._settings.batch))]

    async def _send_batch(self, pool: httpcore.AsyncConnectionPool) -> None:
        spans = self._take()
        try:
            outcome = self._sent if await self._is_sent(pool, spans) else self._dropped
        except asyncio.CancelledError:
            self._waiting.extendleft(reversed(spans))
            raise
        outcome.inc(len(spans))

    async def _is_sent(self, pool: httpcore.AsyncConnectionPool, spans: list[TraceSpan]) -> bool:
        pause = _FIRST_PAUSE
        for attempt in range(_ATTEMPTS):
            try:
                await self._post(pool, spans)
            except Exception as fault:
                self._warn_once(_words(fault))
                if isinstance(fault, _SpansRefused) or attempt + 1 == _ATTEMPTS:
                    break
            else:
                self._failing = False
                return True
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))  # noqa: S311 - spreads load, keeps no secret
            pause = min(2 * pause, _LONGEST_PAUSE)
        return False

    def _warn_once(self, words: str) -> None:
        """Logs a warning, and the next one only after sending has worked in between."""
        if not self._failing:
            log.warning("spans_not_sent", reason=words)
        self._failing = True

    async def _post(self, pool: httpcore.AsyncConnectionPool, spans: list[TraceSpan]) -> None:
        """Sends the spans. Raises `_SpansRefused` for spans that the collector won't take later either."""
        body = encoded_request(self._resource, self._scope, [one.encoded() for one in spans])
        headers = [
            ("Content-Type", "application/x-protobuf"),
            ("User-Agent", f"Headwater/{_VERSION}"),
            *self._settings.headers,
        ]
        if self._settings.gzip:
            body = await asyncio.to_thread(gzip.compress, body, 1)
            headers.append(("Content-Encoding", "gzip"))
        async with (
            asyncio.timeout(self._settings.timeout),
            pool.stream("POST", self._settings.endpoint, headers=headers, content=body) as answer,
        ):
            read = 0
            async for chunk in answer.aiter_stream():
                read += len(chunk)
                if read > _READ_BYTES:
                    break
        if answer.status in _RETRYABLE:
            raise _CollectorBusy(f"the collector answered {answer.status}")
        if not 200 <= answer.status < 300:
            raise _SpansRefused(f"the collector answered {answer.status}")


class _CollectorBusy(Exception):
    """The collector may take the spans later."""


class _SpansRefused(Exception):
    """The collector won't take the spans."""


def tracer_of(settings: TracingSettings | None, process: str) -> Tracer | None:
    """The tracer of a process; None where it doesn't trace. `process` names the service, where no setting does."""
    if settings is None:
        return None
    return Tracer(SpanExporter(settings, process), sampler_of(settings.sampler, settings.ratio))


def _context(settings: TracingSettings) -> ssl.SSLContext | None:
    if not settings.endpoint.startswith("https://"):
        return None
    return ssl.create_default_context(cafile=settings.certificate)


def _words(fault: Exception) -> str:
    return str(fault) or type(fault).__name__
