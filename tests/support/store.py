"""Our own database for tests: fresh ones on the control server, and this process's connection to one of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

from app.store.engine import DB
from app.store.session import connected


@asynccontextmanager
async def store(dsn: str) -> AsyncIterator[None]:
    """Connects this process to the database for the block, then restores the previous connection: a process has one
    pool, and blocks may be nested."""
    if DB.pool is not None and DB.config.get("dsn") == dsn:
        yield
        return
    outer = DB.config, DB.pool
    DB.pool = None
    try:
        async with connected(dsn, max_size=20):
            yield
    finally:
        DB.config, DB.pool = outer


async def new_database(admin_dsn: str, *, template: str | None = None) -> str:
    """The DSN of a new database on that server: empty, or a copy of `template`."""
    name = f"test_{uuid4().hex}"
    connection = await asyncpg.connect(admin_dsn)
    try:
        # By copying files: half the work of the default, which also writes the copy to the log.
        await connection.execute(f'CREATE DATABASE "{name}" TEMPLATE {template or "template0"} STRATEGY file_copy')
    finally:
        await connection.close()
    return database_dsn(admin_dsn, name)


def database_dsn(admin_dsn: str, name: str) -> str:
    """The same server and user, another database."""
    return urlunsplit(urlsplit(admin_dsn)._replace(path=f"/{name}"))


def database_name(dsn: str) -> str:
    return urlsplit(dsn).path.removeprefix("/")
