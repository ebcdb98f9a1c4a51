"""Whether this process is alive and can serve, and its metrics. All without a key: orchestrators and Prometheus ask."""

from typing import Any

from litestar import HttpMethod, MediaType, Request, Response, get, route
from litestar.datastructures import State

from app.core.metrics.page import PATH, MetricsPage
from app.store.session import execute

_METHODS = (HttpMethod.GET, HttpMethod.HEAD)


@route("/health/live", http_method=_METHODS)
async def live() -> dict[str, str]:
    return {"status": "live"}


@route("/health/ready", http_method=_METHODS)
async def ready(request: Request[Any, Any, Any]) -> Response[dict[str, str]]:
    """503 while our own database can't be reached, and once this process is about to end, though it serves until then.
    Temporal is not checked: without it the API still serves."""
    if request.app.state.leaving.is_set():
        return Response({"status": "leaving"}, status_code=503, media_type=MediaType.JSON)
    try:
        await execute("SELECT 1")
    except Exception:
        return Response({"status": "unavailable"}, status_code=503, media_type=MediaType.JSON)
    return Response({"status": "ready"}, media_type=MediaType.JSON)


# In a thread: the page queries sources in the event loop, and waits for them.
@get(PATH, sync_to_thread=True)
def read_metrics(request: Request[None, None, State]) -> Response[bytes]:
    page: MetricsPage = request.app.state.metrics
    content, content_type = page.render(request.headers.get("Accept"))
    return Response(content, headers={"Content-Type": content_type})
