"""Whether this process is alive and can serve, and its metrics. All without a key: orchestrators and Prometheus ask."""

import asyncio
from typing import Any

from litestar import HttpMethod, MediaType, Request, Response, get, route
from litestar.datastructures import State

from app.core.metrics.page import PATH, MetricsPage
from app.store.session import execute

_METHODS = (HttpMethod.GET, HttpMethod.HEAD)


class Readiness:
    """Whether our own database can be reached. Requests that come while that is being checked wait for the
    same answer: anybody may ask, as often as they like, and all of them together take one connection."""

    def __init__(self) -> None:
        self._look: asyncio.Task[bool] | None = None

    async def is_ready(self) -> bool:
        if self._look is None or self._look.done():
            self._look = asyncio.create_task(_answers())
        return await asyncio.shield(self._look)


async def _answers() -> bool:
    try:
        await execute("SELECT 1")
    except Exception:
        return False
    return True


@route("/health/live", http_method=_METHODS)
async def live() -> dict[str, str]:
    return {"status": "live"}


@route("/health/ready", http_method=_METHODS)
async def ready(request: Request[Any, Any, Any]) -> Response[dict[str, str]]:
    """503 while our own database can't be reached, and once this process is about to end, though it serves until then.
    Temporal is not checked: without it the API still serves."""
    if request.app.state.leaving.is_set():
        return Response({"status": "leaving"}, status_code=503, media_type=MediaType.JSON)
    readiness: Readiness = request.app.state.readiness
    if not await readiness.is_ready():
        return Response({"status": "unavailable"}, status_code=503, media_type=MediaType.JSON)
    return Response({"status": "ready"}, media_type=MediaType.JSON)


# In a thread: the page queries sources in the event loop, and waits for them.
@get(PATH, sync_to_thread=True)
def read_metrics(request: Request[None, None, State]) -> Response[bytes]:
    page: MetricsPage = request.app.state.metrics
    content, content_type = page.render(request.headers.get("Accept"))
    return Response(content, headers={"Content-Type": content_type})
