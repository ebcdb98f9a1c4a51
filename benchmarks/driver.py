"""The plain drivers: what a client does who has no service, one connection and one statement."""

import time
from typing import Any

import aiomysql
import asyncpg

from app.contracts.base import Engine


async def connect_and_run(database: dict[str, Any], sql: str) -> float:
    """`database` is what the API told of it. Seconds until the rows are there; saying goodbye is not in it."""
    started = time.perf_counter()
    if database["db_type"] == Engine.POSTGRES:
        connection = await asyncpg.connect(database["connection_string"])
        await connection.fetch(sql)
        took = time.perf_counter() - started
        await connection.close()
        return took
    plain = await aiomysql.connect(
        host=database["host"],
        port=database["port"],
        user=database["db_username"],
        password=database["db_password"],
        db=database["db_name"],
        autocommit=True,
    )
    async with plain.cursor() as cursor:
        await cursor.execute(sql)
        await cursor.fetchall()
    took = time.perf_counter() - started
    plain.close()
    return took
