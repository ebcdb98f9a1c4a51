"""API processes whose event streams are soon silent, over a database that this process changes."""

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
import pytest_asyncio

from app.core.secrets import new_key_setting
from app.local.ports import LOOPBACK
from app.local.processes import ChildProcess
from app.local.services import server_environ, start
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.copies import Copies
from tests.support.forks import ForkedApi
from tests.support.in_process import LoneApi, lone_api
from tests.support.ports import free_port
from tests.support.service import http_client

SILENCE_SECONDS = "0.3"


@asynccontextmanager
async def api_process(folder: Path, dsn: str, **settings: str) -> AsyncIterator[tuple[httpx.AsyncClient, ChildProcess]]:
    """An API process on that database, without Temporal."""
    port = free_port()
    given = {
        "API_PORT": str(port),
        "CONTROL_DSN": dsn,
        "SECRET_KEYS": new_key_setting(),
        "TEMPORAL_ADDRESS": f"{LOOPBACK}:{free_port()}",
        "EVENT_STREAM_COMMENT_SECONDS": SILENCE_SECONDS,
        **settings,
    }
    environ = server_environ() | {f"HEADWATER_{name}": value for name, value in given.items()}
    log = folder / f"api-{port}.log"
    process = await start(ForkedApi("api", port=port, log=log, environ=lambda: environ, host=LOOPBACK))
    try:
        async with http_client(f"http://{LOOPBACK}:{port}") as client:
            yield client, process
    finally:
        await process.stop(timeout=5)


@dataclass(frozen=True)
class Streaming:
    """An API process that streams, and the API in this process, on the same database."""

    lone: LoneApi
    http: httpx.AsyncClient

    async def created(self, **fields: Any) -> tuple[Caller, UUID, str]:
        """A caller of the process, a database that is still to be made, and its operation."""
        here = await self.lone.caller()
        database = data_of(await here.create(**fields), 202)["uuid"]
        (operation,) = data_of(await here.get("/operations", params={"database_uuid": database}), 200)
        return dataclasses.replace(here, http=self.http), UUID(database), operation["uuid"]


@pytest_asyncio.fixture(scope="module")
async def streaming(copies: Copies, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Streaming]:
    async with copies.lent() as dsn, lone_api(dsn) as lone:
        await lone.add_host()
        async with api_process(tmp_path_factory.mktemp("streaming"), dsn) as (http, _):
            yield Streaming(lone, http)
