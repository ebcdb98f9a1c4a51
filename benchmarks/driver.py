"""The plain drivers: what a client without the service does, one connection and one statement."""

import ssl
import time
from typing import Any

import aiomysql
import asyncpg

from app.contracts.base import Engine


async def connect_and_run(database: dict[str, Any], sql: str, tls: ssl.SSLContext | None = None) -> float:
    """`database` is the API's answer; `tls` is for MySQL. Returns the seconds until the rows have arrived, without
    closing the connection."""
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
        ssl=tls,
    )
    async with plain.cursor() as cursor:
        await cursor.execute(sql)
        await cursor.fetchall()
    took = time.perf_counter() - started
    plain.close()
    return took
