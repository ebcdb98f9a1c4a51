"""Reading a stream of Server-Sent Events as a client does."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.client import Caller


@dataclass
class Event:
    name: str = ""
    id: str = ""
    text: str = ""

    @property
    def data(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self.text)
        return read


@dataclass
class EventStream:
    """An open stream."""

    answer: httpx.Response
    comments: int = 0
    _lines: AsyncIterator[str] = field(init=False)

    def __post_init__(self) -> None:
        self._lines = self.answer.aiter_lines()

    async def next(self) -> Event | None:
        """The next event; None when the stream has ended."""
        event, begun = Event(), False
        async for line in self._lines:
            name, _, value = line.partition(": ")
            if line == "" and begun:
                return event
            if line.startswith(":"):
                self.comments += 1
            elif line:
                begun = True
                setattr(event, {"event": "name", "data": "text"}.get(name, name), value)
        return None

    async def comment(self) -> None:
        """Waits for a comment. Fails when something else comes."""
        line = await anext(self._lines)
        assert line.startswith(":"), line
        self.comments += 1
        assert await anext(self._lines) == ""


@asynccontextmanager
async def following(caller: Caller, operation: str, *, after: str | None = None) -> AsyncIterator[EventStream]:
    """The stream of an operation, from the event after that one on."""
    headers = {"Authorization": f"Bearer {caller.api_key}"}
    if after is not None:
        headers["Last-Event-ID"] = after
    async with caller.http.stream("GET", f"/api/v1/operations/{operation}/events", headers=headers) as answer:
        assert answer.status_code == 200, await answer.aread()
        yield EventStream(answer)
