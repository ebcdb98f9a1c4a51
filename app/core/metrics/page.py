"""The metrics of one process in Prometheus' format: its counters, and sources that are queried at each scrape."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

import structlog
from prometheus_client import REGISTRY, CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder, start_wsgi_server
from prometheus_client.registry import Collector

PATH = "/metrics"
Source = Callable[[], Awaitable[Sequence[Metric]]]
"""Returns metrics that are looked up at each scrape. It logs by itself what it couldn't look up."""

_SCRAPE_SECONDS = 5.0
log = structlog.get_logger(__name__)


class MetricsPage:
    """All metrics of this process. Create it in the event loop in which the sources run; render it in another
    thread."""

    def __init__(self, *sources: Source) -> None:
        self._sources = sources
        self._loop = asyncio.get_running_loop()
        self._registry = CollectorRegistry()
        self._registry.register(_ProcessMetrics())
        self._registry.register(_SourceMetrics(self._ask))

    def render(self, accept: str | None) -> tuple[bytes, str]:
        """The page and its content type. Blocks while the sources are queried, for a few seconds at most."""
        encode, content_type = choose_encoder(accept or "")
        return encode(self._registry), content_type

    @contextlib.asynccontextmanager
    async def served(self, host: str, port: int) -> AsyncIterator[None]:
        """Serves the page on its own port for the block. When the port can't be opened it logs an error, and the
        process works without it."""
        try:
            server, thread = start_wsgi_server(port, host, self._registry)
        except OSError as fault:
            log.error("metrics_unserved", host=host, port=port, reason=str(fault))
            yield
            return
        log.info("metrics_served", host=host, port=port)
        try:
            yield
        finally:
            # In a thread: a scrape in progress still needs this loop.
            await asyncio.to_thread(server.shutdown)
            server.server_close()
            await asyncio.to_thread(thread.join)

    def _ask(self) -> Iterable[Metric]:
        asked = asyncio.run_coroutine_threadsafe(self._all(), self._loop)
        try:
            return asked.result(_SCRAPE_SECONDS)
        except Exception as fault:
            # The page is still served without these.
            asked.cancel()
            log.warning("metrics_incomplete", reason=str(fault) or type(fault).__name__)
            return ()

    async def _all(self) -> list[Metric]:
        return [metric for found in await asyncio.gather(*(ask() for ask in self._sources)) for metric in found]


class _ProcessMetrics(Collector):
    def collect(self) -> Iterable[Metric]:
        return REGISTRY.collect()


class _SourceMetrics(Collector):
    def __init__(self, ask: Callable[[], Iterable[Metric]]) -> None:
        self._ask = ask

    def collect(self) -> Iterable[Metric]:
        return self._ask()
