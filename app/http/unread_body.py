"""Reads what a request still sends before its refusal goes out.

A server that answers and closes with bytes unread resets the connection, and the client, still writing, never sees the
answer (RFC 9112, section 9.6). Bodies are therefore read to their end and thrown away, within bounds.
"""

import asyncio
import contextlib

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPReceiveMessage, Message, Receive, ReceiveMessage, Scope, Send

_MOST_BYTES = 16 * 1024 * 1024
_MOST_SECONDS = 5.0


class UnreadBodies:
    """Wraps an application whose handlers may answer before they have read the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        unread = True

        async def receive_noting_the_end() -> HTTPReceiveMessage | ReceiveMessage:
            nonlocal unread
            message = await receive()
            unread = message["type"] == "http.request" and bool(message.get("more_body"))
            return message

        async def send_when_read(message: Message) -> None:
            if message["type"] == "http.response.start" and unread:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_MOST_SECONDS):
                        await discard()
            await send(message)

        async def discard() -> None:
            size = 0
            while unread and size < _MOST_BYTES:
                message = await receive_noting_the_end()
                size += len(message["body"]) if message["type"] == "http.request" else 0

        await self._app(scope, receive_noting_the_end, send_when_read)


def _has_body(scope: Scope) -> bool:
    sent = False
    for name, value in scope["headers"]:
        if name == b"expect" and value.lower() == b"100-continue":
            # Whoever asks first sends nothing to a refusal.
            return False
        sent = sent or name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
    return sent
