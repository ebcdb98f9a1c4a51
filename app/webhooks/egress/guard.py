"""Connections to the outside that never lead inside: the address that is dialled is the one that was checked.

A name is resolved here, all its addresses are checked, and the connection is made to one of those, not to the name
again: a name server that changes its answer between check and connection gains nothing.
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ssl import SSLContext
from time import monotonic
from typing import Any

import httpcore
from httpcore import AnyIOBackend, AsyncNetworkBackend, AsyncNetworkStream

from app.webhooks.egress.addresses import AddressRule
from app.webhooks.egress.lookups import Lookups, Resolve, resolve_by_system
from app.webhooks.egress.streams import BoundedStream

_MOST_ADDRESSES = 8
_PARTY: ContextVar[str] = ContextVar("party", default="")


class AddressRefused(Exception):
    """The host, or one of its addresses, is not public."""


@contextmanager
def on_behalf_of(party: str) -> Iterator[None]:
    """Names that are looked up within the block are charged to this party."""
    token = _PARTY.set(party)
    try:
        yield
    finally:
        _PARTY.reset(token)


class Guard:
    """Decides which addresses a host may be reached on."""

    def __init__(self, rule: AddressRule, resolve: Resolve = resolve_by_system) -> None:
        self._rule = rule
        self._lookups = Lookups(resolve)

    async def addresses(self, host: str) -> list[str]:
        """The first few addresses of the host, each of them admitted. Raises `AddressRefused` when a single one of all
        its addresses is not, and `OSError` for a host that can't be resolved."""
        addresses = await self._lookups.addresses(host, _PARTY.get())
        if not addresses:
            raise OSError(f"{host} has no address")
        # The error doesn't say which address it was: names of inside and their addresses are nobody's business.
        if not all(self._rule.admits(address) for address in addresses):
            raise AddressRefused(f"{host} is, or resolves to, an address that is not public.")
        return addresses[:_MOST_ADDRESSES]


class GuardedBackend(AsyncNetworkBackend):
    """Dials what the guard has admitted. TLS still verifies the name that the URL gave."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._dialler = AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> AsyncNetworkStream:
        """`timeout` is for everything until the connection is encrypted."""
        assert timeout is not None, "every request has a time limit"
        deadline = monotonic() + timeout
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._guard.addresses(host)
        except TimeoutError:
            raise httpcore.ConnectTimeout(f"{host} could not be resolved in time") from None
        except OSError:
            raise httpcore.ConnectError(f"{host} can't be resolved") from None
        return _Dialled(await self._dial(addresses, port, deadline), deadline)

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> AsyncNetworkStream:
        raise AddressRefused("a socket of this machine is not public")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _dial(self, addresses: list[str], port: int, deadline: float) -> AsyncNetworkStream:
        """The connection to the first address that answers; each gets its share of the time that is left."""
        fault: Exception = httpcore.ConnectTimeout("no time left to connect")
        for number, address in enumerate(addresses):
            share = (deadline - monotonic()) / (len(addresses) - number)
            try:
                return await self._dialler.connect_tcp(address, port, timeout=max(share, 0.01))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                fault = error
        raise fault


class _Dialled(BoundedStream):
    """A connection whose encryption has to be ready by the same deadline as the connection itself."""

    def __init__(self, stream: AsyncNetworkStream, deadline: float) -> None:
        super().__init__(stream)
        self._deadline = deadline

    async def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> AsyncNetworkStream:
        left = max(self._deadline - monotonic(), 0.01)
        try:
            return BoundedStream(await self._stream.start_tls(ssl_context, server_hostname, left))
        except asyncio.CancelledError:
            # httpcore closes it for any other reason, and would leave it open until it is collected.
            await self._stream.aclose()
            raise
