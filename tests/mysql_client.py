"""One statement on a MySQL server, for tests."""

from typing import Any

import aiomysql

from tests.servers import RunningServer


async def query(server: RunningServer, sql: str) -> list[tuple[Any, ...]]:
    """The rows of one statement, run as the server's full administrator."""
    connection = await aiomysql.connect(
        host=server.host, port=server.port, user=server.user, password=server.password, autocommit=True
    )
    try:
        async with connection.cursor() as cursor:
            await cursor.execute(sql)
            return [tuple(row) for row in await cursor.fetchall()]
    finally:
        await connection.ensure_closed()
