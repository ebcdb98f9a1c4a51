"""One id a request: in its answer's body and header, and in every log line about it."""

from contextvars import ContextVar

import structlog
from litestar.datastructures import MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from app.core.ids import request_id as new_request_id

HEADER = "X-Request-Id"

_current: ContextVar[str] = ContextVar("request_id", default="")


def current_request_id() -> str:
    """The id of the request that this task serves; empty outside one."""
    return _current.get()


class RequestIds:
    """The outermost layer, so that answers to unknown paths and unexpected errors carry an id too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        request_id = new_request_id()

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message.setdefault("headers", [])
                MutableScopeHeaders(message)[HEADER] = request_id
            await send(message)

        token = _current.set(request_id)
        try:
            with structlog.contextvars.bound_contextvars(request_id=request_id):
                await self._app(scope, receive, send_with_id)
        finally:
            _current.reset(token)
