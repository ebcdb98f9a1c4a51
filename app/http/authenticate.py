"""The first thing that happens to every request under `/api/v1`."""

from litestar.datastructures import Headers, MutableScopeHeaders
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from app.auth.client_address import Address, client_address, parse_networks
from app.core.errors import rate_limit_headers
from app.web.services import Services


class Authenticate:
    """Sets the request's user, or raises what the key deserves. Answers carry what is left of the key's rate."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        services: Services = scope["litestar_app"].state.services
        headers = Headers.from_scope(scope)
        address = _address(scope, headers, services.settings.trusted_proxies)
        admitted = await services.admission.admit(headers.get("Authorization"), address)
        scope["user"] = admitted.principal
        allowance = admitted.allowance
        rate_limit = rate_limit_headers(allowance.limit, allowance.remaining, allowance.resets_in)

        async def send_with_rate_limit(message: Message) -> None:
            if message["type"] == "http.response.start":
                message.setdefault("headers", [])
                MutableScopeHeaders(message).update(rate_limit)
            await send(message)

        await self._app(scope, receive, send_with_rate_limit)


def _address(scope: Scope, headers: Headers, trusted_proxies: tuple[str, ...]) -> Address:
    client = scope["client"]
    peer = client[0] if client else ""
    return client_address(peer, ",".join(headers.getall("X-Forwarded-For", [])), parse_networks(trusted_proxies))
