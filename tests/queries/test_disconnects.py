"""A client that goes away takes its statement with it, on the server too."""

import asyncio
import contextlib
import json
from urllib.parse import urlsplit

import pytest

from app.store.session import fetch
from tests.e2e.hosts import mysql, postgres
from tests.queries.conftest import Asked
from tests.support.model_server import script, sql
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waiting import until

# Reading and writing for as long as nobody ends it.
BUSY = " CROSS JOIN ".join(f"information_schema.columns c{n}" for n in range(4))
_BUSY_LIKE = "%columns c3%"


async def sessions(service: RunningService, asked: Asked, like: str = "%") -> int:
    """That run such a statement in the database, as the full administrator sees them."""
    name = asked.database["db_name"]
    if asked.is_postgres:
        async with postgres(service.postgres.admin_dsn) as connection:
            return int(
                await connection.fetchval(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND state = 'active' AND query LIKE $2",
                    name,
                    like,
                )
            )
    assert service.mysql is not None
    async with mysql(service.mysql.admin_dsn) as cursor:
        await cursor.execute(
            "SELECT count(*) FROM information_schema.processlist"
            " WHERE db = %s AND command = 'Query' AND coalesce(info, '') LIKE %s",
            (name, like),
        )
        return int((await cursor.fetchone())[0])


async def ask_and_leave(service: RunningService, asked: Asked, question: str) -> None:
    """Sends the request, waits until the engine is at work on the statement, and closes the connection."""
    body = json.dumps({"database_uuid": asked.database["uuid"], "query": question}).encode()
    parts = urlsplit(str(service.http.base_url))
    _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    head = (
        f"POST /api/v1/query_executions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {asked.caller.api_key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()
    await until(lambda: sessions(service, asked, _BUSY_LIKE))
    writer.transport.abort()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


@pytest.mark.parametrize(("kind", "outcome"), [("read", "cancelled"), ("write", "unknown")])
async def test_a_client_that_goes_away(service: RunningService, asked: Asked, kind: str, outcome: str) -> None:
    """A write may have been done in the moment in which it was ended: its record doesn't say that it wasn't."""
    await asked.run("CREATE TABLE many (n BIGINT)")
    text = f"SELECT count(*) FROM {BUSY}" if kind == "read" else f"INSERT INTO many SELECT count(*) FROM {BUSY}"
    await ask_and_leave(service, asked, script(sql(text, kind)))

    async def nobody() -> bool:
        return not await sessions(service, asked)

    await until(nobody)
    assert await asked.run("SELECT n FROM many") == []
    await asked.run("DROP TABLE many")

    async def recorded() -> str:
        async with store(service.control_dsn):
            rows = await fetch(
                "SELECT outcome FROM query_executions WHERE team_id = $1 ORDER BY id DESC LIMIT 1", asked.caller.team_id
            )
        return str(rows[0]["outcome"] or "")

    assert await until(recorded) == outcome
