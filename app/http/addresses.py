"""What answers to all callers share: their address, and that no cache stores what they get."""

from litestar.datastructures import Headers
from litestar.types import Scope

from app.auth.client_address import Network, client_address

NO_STORE = (b"cache-control", b"no-store")
"""Answers hold passwords and short-lived data, so no cache may store them."""


def address_of(scope: Scope, trusted_proxies: tuple[Network, ...]) -> str:
    """The client's address; behind trusted proxies, the one that they report."""
    client = scope["client"]
    forwarded_for = None
    if trusted_proxies:
        forwarded_for = ",".join(Headers.from_scope(scope).getall("X-Forwarded-For", []))
    return client_address(client[0] if client else "", forwarded_for, trusted_proxies)
