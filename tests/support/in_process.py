"""The API inside the tests' own process: it starts fast, on its own database, without hosts or Temporal. What it
starts with is new each time, except the routes, which hold nothing between two starts."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
from litestar.types import ASGIApp

from app.auth.keys import KeyControls
from app.contracts.base import Engine
from app.core.secrets import new_key_setting
from app.core.settings import Settings
from app.http.app import Routes, assemble, create_app, serves_metrics
from app.local.ports import LOOPBACK
from app.store.engine import DB
from app.store.session import fetch
from tests.support.client import ALL_SCOPES, UNHURRIED, Caller, new_caller
from tests.support.ports import free_port


@dataclass(frozen=True)
class LoneApi:
    """The API over our own database alone: its hosts are only rows, and Temporal is unavailable."""

    http: httpx.AsyncClient
    control_dsn: str

    async def caller(
        self,
        *,
        tier: str = "pro",
        scopes: tuple[str, ...] = ALL_SCOPES,
        controls: KeyControls = UNHURRIED,
    ) -> Caller:
        return await new_caller(self.http, self.control_dsn, tier=tier, scopes=scopes, controls=controls)

    async def warm_up(self) -> None:
        """Opens all connections of the pool, so that concurrent requests really meet."""
        await asyncio.gather(*(fetch("SELECT pg_sleep(0.05)") for _ in range(20)))

    async def add_host(self, **columns: Any) -> int:
        """A registered host without a server."""
        row = {
            "engine": Engine.POSTGRES.value,
            "flavour": "postgres",
            "version": "18.6",
            "region": "us-east-1",
            "host": f"db-{uuid4().hex}.example.com",
            "port": 5432,
            "admin_sealed": b"",
            "capacity": 1000,
            "connection_capacity": 100_000,
            **columns,
        }
        names, places = ", ".join(row), ", ".join(f"${number + 1}" for number in range(len(row)))
        rows = await fetch(f"INSERT INTO engine_hosts ({names}) VALUES ({places}) RETURNING id", *row.values())
        return int(rows[0]["id"])


@asynccontextmanager
async def lone_api(control_dsn: str, *, tracer: Any = None, **settings: Any) -> AsyncIterator[LoneApi]:
    """For the block, this process's store is connected to `control_dsn`."""
    known = {
        "control_dsn": control_dsn,
        "secret_keys": new_key_setting(),
        "temporal_address": f"{LOOPBACK}:{free_port()}",
        **settings,
    }
    outer = DB.config, DB.pool
    DB.pool = None
    started = Settings(**known)
    try:
        with _lent_routes(with_metrics=serves_metrics(started), with_console=started.console) as routes:
            app = create_app(started, routes=routes, tracer=tracer)
            async with _lifespan(app), _client(app) as http:
                yield LoneApi(http, control_dsn)
    finally:
        DB.config, DB.pool = outer


_unused: list[Routes] = []
"""Of applications that have ended in good order."""


@contextmanager
def _lent_routes(*, with_metrics: bool, with_console: bool) -> Iterator[Routes]:
    """To one application at a time."""
    wanted = (with_metrics, with_console)
    routes = next((one for one in _unused if (one.with_metrics, one.with_console) == wanted), None)
    if routes is None:
        routes = assemble(with_metrics=with_metrics, with_console=with_console)
    else:
        _unused.remove(routes)
    yield routes
    _unused.append(routes)


def _client(app: ASGIApp) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=app)  # type: ignore[arg-type]  # Litestar types its scopes more narrowly
    return httpx.AsyncClient(transport=transport, base_url="http://test", timeout=30)


@asynccontextmanager
async def _lifespan(app: ASGIApp) -> AsyncIterator[None]:
    """Runs the application's start-up and shut-down, as a server does."""
    to_app: asyncio.Queue[Any] = asyncio.Queue()
    from_app: asyncio.Queue[Any] = asyncio.Queue()
    scope: Any = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": {}}
    running = asyncio.ensure_future(app(scope, to_app.get, from_app.put))
    await to_app.put({"type": "lifespan.startup"})
    started = await from_app.get()
    assert started["type"] == "lifespan.startup.complete", json.dumps(started)
    try:
        yield
    finally:
        await to_app.put({"type": "lifespan.shutdown"})
        await running
