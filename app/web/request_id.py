"""One id a request: in its answer's body and header, and in every log line about it."""

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from app.core import context, ids

HEADER = b"x-request-id"


class RequestIds:
    """The outermost layer, so that answers to unknown paths and unexpected errors carry an id too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        request_id = ids.request_id()
        header = (HEADER, request_id.encode())

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), header]
            await send(message)

        token = context.request_id.set(request_id)
        try:
            await self._app(scope, receive, send_with_id)
        finally:
            context.request_id.reset(token)
