"""A created database is real: its credentials log in, on each engine."""

from typing import Any

import aiomysql
import asyncpg

from tests.servers import RunningServer
from tests.support.client import Caller


async def test_the_connection_string_of_postgres_logs_in(caller: Caller) -> None:
    made = await caller.created()
    connection = await asyncpg.connect(made["connection_string"])
    try:
        assert await connection.fetchval("SELECT current_database()::text || ' ' || current_user::text") == (
            f"{made['db_name']} {made['db_username']}"
        )
    finally:
        await connection.close()


async def test_the_credentials_of_mysql_log_in(caller: Caller, mysql_server: RunningServer) -> None:
    made = await caller.created(db_type="mysql")
    connection: Any = await aiomysql.connect(
        host=made["host"],
        port=made["port"],
        user=made["db_username"],
        password=made["db_password"],
        db=made["db_name"],
    )
    try:
        async with connection.cursor() as cursor:
            await cursor.execute("SELECT database()")
            assert await cursor.fetchone() == (made["db_name"],)
    finally:
        await connection.ensure_closed()
