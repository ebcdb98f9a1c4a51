"""Receivers, and an API that may send to them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.support.in_process import LoneApi, lone_api
from tests.support.receiver import Receiver, receiver

ALLOWED = ("127.0.0.0/8",)


@pytest_asyncio.fixture
async def receiving(tmp_path: Path) -> AsyncIterator[Receiver]:
    async with receiver(tmp_path) as made:
        yield made


@pytest_asyncio.fixture
async def sending(control_dsn: str, receiving: Receiver) -> AsyncIterator[LoneApi]:
    """The API in this process, which trusts the receiver and may reach this machine."""
    async with lone_api(control_dsn, webhook_allow_cidrs=ALLOWED, webhook_ca_file=receiving.ca_file) as api:
        await api.add_host()
        yield api
