"""`python -m benchmarks.bare DSN PORT`: the minimum of a handler with one query, under the API's own server.

Like the API's, its pool doesn't clean up returned connections: asyncpg's own clean-up would be a second query.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import uvloop
from granian.constants import Interfaces
from granian.server.embed import Server
from litestar import Litestar, get

from app.local.ports import LOOPBACK
from app.store.session import keep_session


def create_app(dsn: str) -> Litestar:
    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        async with asyncpg.create_pool(dsn, min_size=1, max_size=20, reset=keep_session) as pool:
            app.state.pool = pool
            yield

    @get("/bare")
    async def bare() -> dict[str, int]:
        return {"answer": await app.state.pool.fetchval("SELECT 1 + $1::int", 1)}

    @get("/health/ready")
    async def ready() -> None:
        return None

    app = Litestar([bare, ready], lifespan=[lifespan], openapi_config=None, logging_config=None)
    return app


def main() -> None:
    dsn, port = sys.argv[1:]
    server = Server(create_app(dsn), address=LOOPBACK, port=int(port), interface=Interfaces.ASGI, log_access=False)
    uvloop.run(server.serve())


if __name__ == "__main__":
    main()
