"""Our own database for tests: fresh ones on the control server, and this process's connection to one of them.

Tests log in as the service does, with a role that owns nothing, so that a right that is missing is found. What only the
owner may do takes `owner_dsn`.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

from app.store.engine import DB
from app.store.service_role import prepare
from app.store.session import connected
from tests import servers

POOL = 20
"""Connections of this process to our own database, as many as an API has."""
_SERVICE = "headwater_service:servicePassw0rd"
"""The service's role on the server, with its password."""


@asynccontextmanager
async def store(dsn: str) -> AsyncIterator[None]:
    """Connects this process to the database for the block, then restores the previous connection: a process has one
    pool, and blocks may be nested."""
    if DB.pool is not None and DB.config.get("dsn") == dsn:
        yield
        return
    with _set_aside():
        async with connected(dsn, max_size=POOL):
            yield


@contextmanager
def _set_aside() -> Iterator[None]:
    """Leaves the process without a pool for the block."""
    outer = DB.config, DB.pool
    DB.pool = None
    try:
        yield
    finally:
        DB.config, DB.pool = outer


_originals: dict[str, str] = {}
"""By the administrators' DSNs of servers."""


async def migrated_original(admin_dsn: str) -> str:
    """The DSN of the server's one database with our tables and nothing in them, to make copies of, for the service's
    role. Leave it unconnected."""
    if admin_dsn not in _originals:
        _originals[admin_dsn] = await _migrated(admin_dsn)
    return _originals[admin_dsn]


async def migrated_database(admin_dsn: str) -> str:
    """The DSN of a new database on that server with our tables, for the service's role."""
    return await copy_of(await migrated_original(admin_dsn), admin_dsn)


async def _migrated(admin_dsn: str) -> str:
    owner = await new_database(admin_dsn)
    with _set_aside():
        await prepare(owner, service_dsn(owner))
    await servers.set_password(admin_dsn, *_SERVICE.split(":"))
    return service_dsn(owner)


async def copy_of(dsn: str, admin_dsn: str) -> str:
    """A new database with the same tables, rows and rights; its DSN is for the same role."""
    copied = await new_database(admin_dsn, template=database_name(dsn))
    return database_dsn(dsn, database_name(copied))


def service_dsn(dsn: str) -> str:
    """The same database for the service's role."""
    parts = urlsplit(dsn)
    return urlunsplit(parts._replace(netloc=f"{_SERVICE}@{parts.hostname}:{parts.port}"))


async def execute_at(dsn: str, *statements: str) -> None:
    """On a connection of its own, such as the owner's for what the service's role may not do."""
    connection = await asyncpg.connect(dsn)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


def owner_dsn(dsn: str, admin_dsn: str) -> str:
    """The same database for the owner of its tables."""
    return database_dsn(admin_dsn, database_name(dsn))


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
