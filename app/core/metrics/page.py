"""The metrics of one process in Prometheus' format: what it counted, and what is asked for at each scrape."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

import structlog
from prometheus_client import REGISTRY, CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder, start_wsgi_server
from prometheus_client.registry import Collector

PATH = "/metrics"
Source = Callable[[], Awaitable[Sequence[Metric]]]
"""Metrics that are looked up when somebody asks. It says by itself what it couldn't look up."""

_SCRAPE_SECONDS = 5.0
log = structlog.get_logger(__name__)


class MetricsPage:
    """Everything that this process tells. Make it in the event loop in which the sources run; read it in any other
    thread."""

    def __init__(self, *sources: Source) -> None:
        self._sources = sources
        self._loop = asyncio.get_running_loop()
        self._registry = CollectorRegistry()
        self._registry.register(_ProcessMetrics())
        self._registry.register(_SourceMetrics(self._ask))

    def render(self, accept: str | None) -> tuple[bytes, str]:
        """The page and its content type. Blocks while the sources are asked, for a few seconds at most."""
        encode, content_type = choose_encoder(accept or "")
        return encode(self._registry), content_type

    @contextlib.asynccontextmanager
    async def served(self, host: str, port: int) -> AsyncIterator[None]:
        """On a port of its own, for the block. Where it can't listen there the log says so, and the process does its
        work without."""
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
            # In a thread: a scrape that is under way still needs this loop.
            await asyncio.to_thread(server.shutdown)
            server.server_close()
            await asyncio.to_thread(thread.join)

    def _ask(self) -> Iterable[Metric]:
        asked = asyncio.run_coroutine_threadsafe(self._all(), self._loop)
        try:
            return asked.result(_SCRAPE_SECONDS)
        except Exception as fault:
            # The rest of the page still tells what it can.
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
