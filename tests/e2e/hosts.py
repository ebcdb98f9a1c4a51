"""What lies on the engine hosts, seen by their full administrators, and what a tenant can do there."""

import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import aiomysql
import asyncpg

from app.contracts.base import Engine
from app.local.stack_file import StackHost
from tests.mysql_client import leave

_POSTGRES_OBJECTS = """
SELECT 'database ' || datname FROM pg_database WHERE datname ~ $1
UNION ALL SELECT 'role ' || rolname FROM pg_roles WHERE rolname ~ $1
UNION ALL SELECT 'session ' || usename FROM pg_stat_activity
WHERE backend_type = 'client backend' AND (usename ~ $1 OR datname ~ $1)
"""
_MYSQL_OBJECTS = """
SELECT CONCAT('database ', schema_name) FROM information_schema.schemata WHERE schema_name REGEXP %s
UNION ALL SELECT CONCAT('role ', user) FROM mysql.user WHERE user REGEXP %s
UNION ALL SELECT CONCAT('marker ', CONVERT(name USING utf8mb4)) FROM headwater.tenants WHERE name REGEXP %s
UNION ALL SELECT CONCAT('grant ', user) FROM mysql.db WHERE user REGEXP %s
UNION ALL SELECT CONCAT('session ', user) FROM information_schema.processlist WHERE user REGEXP %s
"""
_TENANT = "^t[a-z2-7]{22}"
"""As `app.core.ids.engine_name` makes them, and whatever is named after one."""
_PATIENCE_SECONDS = 60.0
"""To log in and to leave: on a machine with other work a server's process starts and ends late."""


async def objects(host: StackHost) -> list[str]:
    """Everything there that belongs to tenants, as `<kind> <name>`, sorted."""
    if host.engine == Engine.POSTGRES:
        async with postgres(host.admin_dsn) as connection:
            return sorted(row[0] for row in await connection.fetch(_POSTGRES_OBJECTS, _TENANT))
    async with mysql(host.admin_dsn) as cursor:
        with warnings.catch_warnings(action="ignore"):  # MySQL would have us ask elsewhere, where MariaDB has nothing
            await cursor.execute(_MYSQL_OBJECTS, (_TENANT,) * _MYSQL_OBJECTS.count("%s"))
        return sorted(row[0] for row in await cursor.fetchall())


def objects_of(engine: str, name: str) -> list[str]:
    """What `objects` lists of one tenant that is whole and has no session open."""
    kinds = ("database", "role") if engine == Engine.POSTGRES else ("database", "role", "marker", "grant")
    return [f"{kind} {name}" for kind in kinds]


def reader_of(engine: str, name: str) -> list[str]:
    """What `objects` lists of the account that reads for a tenant's questions."""
    return [f"{kind} {name}_ro" for kind in (("role",) if engine == Engine.POSTGRES else ("role", "grant"))]


async def login(connection_string: str) -> int:
    """Logs in as a tenant, makes a table, fills it and returns its number of rows."""
    statements = ("CREATE TABLE IF NOT EXISTS visits (n integer)", "INSERT INTO visits VALUES (1)")
    if connection_string.startswith("postgresql"):
        async with postgres(connection_string) as connection:
            for statement in statements:
                await connection.execute(statement)
            return int(await connection.fetchval("SELECT count(*) FROM visits"))
    async with mysql(connection_string) as cursor:
        with warnings.catch_warnings(action="ignore"):  # that the table is there already
            for statement in statements:
                await cursor.execute(statement)
        await cursor.execute("SELECT count(*) FROM visits")
        return int((await cursor.fetchone())[0])


@asynccontextmanager
async def postgres(dsn: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(dsn, timeout=_PATIENCE_SECONDS)
    try:
        yield connection
    finally:
        await connection.close(timeout=_PATIENCE_SECONDS)


@asynccontextmanager
async def mysql(dsn: str) -> AsyncIterator[Any]:
    """A cursor that commits each statement."""
    parts = urlsplit(dsn)
    connection = await aiomysql.connect(
        host=parts.hostname,
        port=parts.port,
        user=parts.username,
        password=parts.password,
        db=parts.path.lstrip("/") or None,
        autocommit=True,
        connect_timeout=_PATIENCE_SECONDS,
    )
    try:
        async with connection.cursor() as cursor:
            yield cursor
    except BaseException:
        connection.close()
        raise
    await leave(connection)
