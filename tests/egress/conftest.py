"""A receiver with a name, a name server that knows it, and a listener inside that nothing may ever reach."""

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from app.webhooks.egress import sender as sending
from tests.support.name_server import NameServer, name_server
from tests.support.receiver import Receiver, receiver
from tests.support.waiting import LIMIT_SECONDS

NAME = "hooks.example.com"


@dataclass
class Inside:
    """Listens on every address of this machine, of both kinds."""

    port: int
    connections: int = 0


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that stalls takes longer to connect than the service allows."""
    monkeypatch.setattr(sending, "CONNECT_SECONDS", LIMIT_SECONDS)


@pytest_asyncio.fixture
async def inside() -> AsyncIterator[Inside]:
    listener = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    made = Inside(listener.getsockname()[1])

    async def count(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.connections += 1
        writer.close()

    server = await asyncio.start_server(count, sock=listener)
    try:
        yield made
    finally:
        server.close()


@pytest_asyncio.fixture
async def names() -> AsyncIterator[NameServer]:
    async with name_server() as server:
        yield server


@pytest_asyncio.fixture
async def outside(tmp_path: Path) -> AsyncIterator[Receiver]:
    """A receiver that its certificate calls `NAME`."""
    async with receiver(tmp_path, NAME) as made:
        yield made
