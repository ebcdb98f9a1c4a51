"""The metrics on the API's own port, for where that port is nobody's but the operator's."""

from litestar import Request, Response, get
from litestar.datastructures import State

from app.core.metrics.page import PATH, MetricsPage


# In a thread: the page asks the event loop for some of what it tells, and waits.
@get(PATH, sync_to_thread=True)
def read_metrics(request: Request[None, None, State]) -> Response[bytes]:
    page: MetricsPage = request.app.state.metrics
    content, content_type = page.render(request.headers.get("Accept"))
    return Response(content, headers={"Content-Type": content_type})
