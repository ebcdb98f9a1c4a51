"""A small body is asked for before the application wants it; a large one, or one whose sender asks first, is not."""

import asyncio
from typing import Any

import pytest

from app.http.unread_body import UnreadBodies


@pytest.mark.parametrize(
    ("headers", "early"),
    [
        ([(b"content-length", b"2")], True),
        ([(b"content-length", b"65537")], False),
        ([(b"transfer-encoding", b"chunked")], False),
        ([(b"content-length", b"2"), (b"expect", b"100-continue")], False),
    ],
    ids=["small", "large", "of unknown size", "asked for"],
)
async def test_when_the_body_is_asked_for(headers: list[tuple[bytes, bytes]], early: bool) -> None:
    asked = 0
    read: list[Any] = []

    async def receive() -> Any:
        nonlocal asked
        asked += 1
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        assert asked == int(early)
        read.append(await receive())

    async def send(message: Any) -> None:
        raise AssertionError(message)

    scope: Any = {"type": "http", "headers": headers}
    await UnreadBodies(app, 30)(scope, receive, send)
    assert [message["body"] for message in read] == [b"{}"]
    assert asked == 1
