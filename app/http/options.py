"""Answering OPTIONS."""

from typing import Any

from litestar import Request, Response


async def answer_options(request: Request[Any, Any, Any]) -> Response[None] | None:
    """Answers OPTIONS before Litestar's own handler, which names only one of the methods when several handlers of a
    path were registered separately. RFC 9110, section 9.3.7."""
    if request.method != "OPTIONS":
        return None
    methods = request.app.route_handler_method_map[request.scope["path_template"]]
    return Response(None, status_code=204, headers={"Allow": ", ".join(sorted(methods))})
