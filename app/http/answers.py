"""How a handler's struct becomes an answer."""

from typing import Any

import msgspec
from litestar import Request, Response
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp, Receive, Scope, Send

from app.web.envelope import encode

_JSON = (b"content-type", b"application/json")


class StructResponse(Response[Any]):
    """Litestar's own response for all but structs, which most answers are. For a struct it keeps what is sent and
    nothing else: no cookies, no headers of its own, no encoders to be merged. That saves a tenth of the shortest
    request."""

    def __init__(self, content: Any, *, status_code: int | None = None, **more: Any) -> None:
        if isinstance(content, msgspec.Struct):
            self.content = content
            self.status_code = status_code
        else:
            super().__init__(content, status_code=status_code, **more)

    def to_asgi_response(  # type: ignore[override]  # the base declares each of its options
        self, app: None, request: Request[Any, Any, Any], **options: Any
    ) -> "ASGIResponse | ASGIApp":
        if isinstance(self.content, msgspec.Struct):
            return _Encoded(self.status_code or 200, encode(self.content))
        return super().to_asgi_response(app, request, **options)


class _Encoded:
    """An ASGI application that sends this JSON."""

    __slots__ = ("_body", "_status")

    def __init__(self, status: int, body: bytes) -> None:
        self._status = status
        self._body = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        length = (b"content-length", b"%d" % len(self._body))
        await send({"type": "http.response.start", "status": self._status, "headers": [_JSON, length]})
        await send({"type": "http.response.body", "body": self._body, "more_body": False})
