"""Work that ends when its client goes away."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from litestar import Request

Answer = TypeVar("Answer")


class ClientGone(Exception):
    """Nobody waits for the answer any more; the work was cancelled and has come to its end."""


async def while_connected(request: Request[Any, Any, Any], work: Coroutine[Any, Any, Answer]) -> Answer:
    """The work's result, unless its client goes away before. Call it after the body was read. Raises `ClientGone`."""
    working = asyncio.create_task(work)
    watching = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        working.cancel()
        await asyncio.wait((working,))
        raise ClientGone
    finally:
        for task in (working, watching):
            task.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


async def _gone(request: Request[Any, Any, Any]) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
