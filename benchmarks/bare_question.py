"""`python -m benchmarks.bare_question CONTROL_DSN MODEL_URL PORT`: the minimum for answering a question, under the
API's own server: checking the key, one request to the model, the plain driver, and one commit."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import httpx
import uvloop
from granian.constants import Interfaces
from granian.server.embed import Server
from litestar import Litestar, Request, get, post

from app.auth.admission import admission
from app.auth.client_address import client_address
from app.local.ports import LOOPBACK
from app.store.session import keep_session
from benchmarks.driver import connect_and_run

Call = Request[Any, Any, Any]


def create_app(dsn: str, model: str) -> Litestar:
    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        async with (
            admission(dsn) as app.state.admission,
            asyncpg.create_pool(dsn, min_size=1, max_size=20, reset=keep_session) as app.state.pool,
            httpx.AsyncClient(trust_env=False, timeout=60) as app.state.http,
        ):
            await app.state.pool.execute("CREATE TABLE IF NOT EXISTS bare_questions (question text, sql text)")
            yield

    @post("/bare")
    async def bare(request: Call, data: dict[str, Any]) -> dict[str, Any]:
        state = request.app.state
        await state.admission.admit(request.headers["Authorization"], client_address(LOOPBACK, None, ()))
        asked = {"messages": [{"role": "user", "content": data["query"]}]}
        await asyncio.gather(state.http.post(model, json=asked), connect_and_run(data["database"], data["sql"]))
        await state.pool.execute("INSERT INTO bare_questions VALUES ($1, $2)", data["query"], data["sql"])
        return {"success": True}

    @get("/health/ready")
    async def ready() -> None:
        return None

    return Litestar([bare, ready], lifespan=[lifespan], openapi_config=None, logging_config=None)


def main() -> None:
    dsn, model, port = sys.argv[1:]
    server = Server(
        create_app(dsn, model), address=LOOPBACK, port=int(port), interface=Interfaces.ASGI, log_access=False
    )
    uvloop.run(server.serve())


if __name__ == "__main__":
    main()
