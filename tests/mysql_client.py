"""One statement on a MySQL server, for tests, and the end of a connection."""

import asyncio
from contextlib import suppress
from typing import Any

import aiomysql

from tests.servers import RunningServer

_QUIT = b"\x01\x00\x00\x00\x01"
_QUIT_SECONDS = 120.0


async def query(server: RunningServer, sql: str) -> list[tuple[Any, ...]]:
    """The rows of one statement, run as the server's full administrator."""
    connection = await aiomysql.connect(
        host=server.host, port=server.port, user=server.user, password=server.password, autocommit=True
    )
    try:
        async with connection.cursor() as cursor:
            await cursor.execute(sql)
            rows = [tuple(row) for row in await cursor.fetchall()]
    except BaseException:
        connection.close()
        raise
    await leave(connection)
    return rows


async def leave(connection: Any) -> None:
    """Ends a connection on which nothing is under way, and waits until the server has ended it too: until then it is
    counted against the limit of its account, and shown among the sessions."""
    try:
        if not connection.closed:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_QUIT_SECONDS):
                    connection._writer.write(_QUIT)
                    await connection._reader.read()
    finally:
        connection.close()
