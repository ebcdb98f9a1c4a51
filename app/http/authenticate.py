"""The first thing that happens to every request under `/api/v1`."""

from litestar.datastructures import Headers
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from app.auth.principal import authenticate


class Authenticate:
    """Sets the request's user, or raises what the key deserves."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == ScopeType.HTTP:
            scope["user"] = await authenticate(Headers.from_scope(scope).get("Authorization"))
        await self._app(scope, receive, send)
