"""Metrics on the API's own port, for installations where only the operator can reach it."""

from litestar import Request, Response, get
from litestar.datastructures import State

from app.core.metrics.page import PATH, MetricsPage


# In a thread: the page queries sources in the event loop, and waits for them.
@get(PATH, sync_to_thread=True)
def read_metrics(request: Request[None, None, State]) -> Response[bytes]:
    page: MetricsPage = request.app.state.metrics
    content, content_type = page.render(request.headers.get("Accept"))
    return Response(content, headers={"Content-Type": content_type})
