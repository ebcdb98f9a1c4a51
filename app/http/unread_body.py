"""Reads the rest of a request's body before an error is answered, and detects bodies that end too early or too late.

A server that answers and closes with unread bytes resets the connection, and a client that is still writing never sees
the answer (RFC 9112, section 9.6). Bodies are therefore read to their end and discarded, within limits.
"""

import asyncio
import contextlib
from collections.abc import Awaitable

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPReceiveMessage, Message, Receive, ReceiveMessage, Scope, Send

from app.core.errors import MalformedJSON, RequestTimeout

_Received = HTTPReceiveMessage | ReceiveMessage
"""A named union, because annotations of nested functions are evaluated in each request."""
_EARLY_BYTES = 64 * 1024
"""Bodies up to this size are requested immediately, and arrive while the key is being checked."""
_MAX_BYTES = 16 * 1024 * 1024
_MAX_SECONDS = 5.0


class UnreadBodies:
    """Wraps an application whose handlers may answer before they have read the body."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        """`seconds` is the time limit from the request's head to the end of its body, in whatever pieces it arrives."""
        self._app = app
        self._seconds = seconds

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """No layer at all for requests without a body."""
        if scope["type"] == ScopeType.HTTP and _has_body(scope):
            return self._read(scope, receive, send)
        return self._app(scope, receive, send)

    async def _read(self, scope: Scope, receive: Receive, send: Send) -> None:
        unread = True
        # A client that waits for 100 Continue sends no body after an error.
        asks_first = any(name == b"expect" and value.lower() == b"100-continue" for name, value in scope["headers"])
        early = asyncio.create_task(_receive(receive)) if _is_small(scope) and not asks_first else None
        deadline = asyncio.get_running_loop().time() + self._seconds

        async def receive_noting_the_end() -> _Received:
            nonlocal unread, early
            coming, early = early or receive(), None
            # After the body's end only a disconnect can arrive, and waiting for it may take as long as the answer does.
            try:
                async with asyncio.timeout_at(deadline if unread else None):
                    message = await coming
            except TimeoutError:
                raise RequestTimeout(self._seconds) from None
            cut_short = unread and message["type"] == "http.disconnect"
            unread = message["type"] == "http.request" and bool(message.get("more_body"))
            if cut_short:
                raise MalformedJSON("The body ended before all of it was sent.")
            return message

        async def send_when_read(message: Message) -> None:
            if message["type"] == "http.response.start" and unread and not asks_first:
                with contextlib.suppress(TimeoutError, MalformedJSON, RequestTimeout):
                    async with asyncio.timeout(_MAX_SECONDS):
                        await discard()
            await send(message)

        async def discard() -> None:
            size = 0
            while unread and size < _MAX_BYTES:
                message = await receive_noting_the_end()
                size += len(message["body"]) if message["type"] == "http.request" else 0

        try:
            await self._app(scope, receive_noting_the_end, send_when_read)
        finally:
            if early is not None:
                early.cancel()


async def _receive(receive: Receive) -> _Received:
    return await receive()


def _is_small(scope: Scope) -> bool:
    sizes = [value for name, value in scope["headers"] if name == b"content-length"]
    return len(sizes) == 1 and sizes[0].isdigit() and int(sizes[0]) <= _EARLY_BYTES


def _has_body(scope: Scope) -> bool:
    # A loop, because a generator costs a request without a body twice as much.
    for name, value in scope["headers"]:
        if name == b"transfer-encoding" or (name == b"content-length" and value != b"0"):
            return True
    return False
