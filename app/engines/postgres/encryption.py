"""Connecting under the host's TLS policy, without ever sending the password itself to a server that hasn't proven its
identity.

The driver answers every authentication request, even one for the clear password, and has no option against it (libpq's
is `require_auth`). So the server's messages are read before the driver sees them.
"""

import asyncio
import ssl
import struct
from collections.abc import Callable
from typing import Any, Literal

import asyncpg

from app.engines.tls import TlsMode, TlsPolicy

_AUTHENTICATION = ord("R")
_OK = 0
# MD5, SASL, and SASL's two continuations: only a proof of the password is sent, never the password.
_HARMLESS = {_OK, 5, 10, 11, 12}
_MAX_OCTETS = 65_536
"""The maximum size of a message before the login has ended."""
_REFUSAL = "it asks for the password itself, over a connection that doesn't prove whose it is: verified TLS is needed"


class Encryption:
    """Connects to one server under its policy."""

    def __init__(self, policy: TlsPolicy) -> None:
        self._policy = policy

    async def connect(
        self, dsn: str | None = None, *, loop: asyncio.AbstractEventLoop | None = None, **options: Any
    ) -> Any:
        """`asyncpg.connect` with these options."""
        real = loop or asyncio.get_running_loop()
        guarded: Any = real if self._policy.verified else _GuardedLoop(real)
        return await asyncpg.connect(dsn, loop=guarded, ssl=self._ssl(), **options)

    def _ssl(self) -> ssl.SSLContext | Literal[False, "prefer"]:
        if self._policy.mode is TlsMode.PREFER:
            return "prefer"
        return self._policy.context or False


class _GuardedLoop:
    """The running event loop, which puts a guard before the protocol of each new connection. The driver takes a loop
    as an option; because it equals the real one, the driver finds the current task."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def __eq__(self, other: object) -> bool:
        return other is self._loop or other is self

    def __hash__(self) -> int:
        return hash(self._loop)

    async def create_connection(self, factory: Callable[[], Any], *address: Any, **options: Any) -> tuple[Any, Any]:
        made: list[Any] = []

        def guarded() -> LoginGuard:
            made.append(factory())
            return LoginGuard(made[-1])

        guard: LoginGuard
        transport, guard = await self._loop.create_connection(guarded, *address, **options)
        return _GuardedTransport(transport, guarding=guard.reading), made[-1]

    async def start_tls(self, transport: Any, protocol: Any, context: ssl.SSLContext, **options: Any) -> Any:
        upgraded = await self._loop.start_tls(transport.real, protocol, context, **options)
        return upgraded and _GuardedTransport(upgraded)


class _GuardedTransport:
    """A transport that puts the first database protocol behind a guard."""

    def __init__(self, real: Any, *, guarding: bool = False) -> None:
        self.real = real
        self._guarding = guarding

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def set_protocol(self, protocol: Any) -> None:
        if not self._guarding:
            self._guarding = True
            protocol = LoginGuard(protocol, self.real)
        self.real.set_protocol(protocol)


class LoginGuard(asyncio.Protocol):
    """Passes a server's messages on until the login has succeeded, then does nothing. If more than a proof of the
    password is requested, it closes the connection, and the driver sees a protocol error."""

    def __init__(self, inner: Any, transport: Any = None) -> None:
        self._inner = inner
        self._transport = transport
        self._pending = b""
        # The request for TLS is answered by a single byte, which is no message.
        self.reading = isinstance(inner, asyncpg.protocol.Protocol)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self._pending += data
        while self.reading and (message := self._next()) is not None:
            self._read(message)
        if not self.reading and self._pending:
            rest, self._pending = self._pending, b""
            self._inner.data_received(rest)

    def _next(self) -> bytes | None:
        if len(self._pending) < 5:
            return None
        (length,) = struct.unpack_from("!L", self._pending, 1)
        if length > _MAX_OCTETS:
            self._refuse("it sent a message of the login that is too long")
            return None
        if len(self._pending) < 1 + length:
            return None
        message, self._pending = self._pending[: 1 + length], self._pending[1 + length :]
        return message

    def _read(self, message: bytes) -> None:
        if message[0] == _AUTHENTICATION:
            (method,) = struct.unpack_from("!L", message.ljust(9, b"\xff"), 5)
            if method not in _HARMLESS:
                self._refuse(_REFUSAL)
                return
            if method == _OK:
                self.reading = False
                self._transport.set_protocol(self._inner)
        self._inner.data_received(message)

    def _refuse(self, reason: str) -> None:
        self._pending = b""
        self._transport.abort()
        # As the server itself would say it (PostgreSQL's documentation, section 53.8); 08P01 is protocol_violation.
        fields = b"SFATAL\0C08P01\0M" + reason.encode() + b"\0\0"
        self._inner.data_received(b"E" + struct.pack("!L", len(fields) + 4) + fields)

    def eof_received(self) -> bool | None:
        answer: bool | None = self._inner.eof_received()
        return answer

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
