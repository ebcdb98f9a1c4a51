"""Logging in to a database with credentials of one's choice, and what the service records of them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

import asyncpg
import pymysql

from app.store.session import fetch
from tests.e2e.hosts import mysql, postgres
from tests.support.answers import data_of
from tests.support.client import Caller

REFUSED = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidPasswordError,
    asyncpg.InsufficientPrivilegeError,
    pymysql.err.OperationalError,
)

ENDED = (asyncpg.PostgresError, asyncpg.InterfaceError, pymysql.err.Error, OSError)
"""What a statement meets whose session has ended."""


@asynccontextmanager
async def session(connection_string: str) -> AsyncIterator[Callable[[str], Awaitable[Any]]]:
    """What runs a statement in one open session, and returns the first value of its answer."""
    if connection_string.startswith("postgresql"):
        async with postgres(connection_string) as connection:
            yield connection.fetchval
        return
    async with mysql(connection_string) as cursor:

        async def ask(statement: str) -> Any:
            await cursor.execute(statement)
            row = await cursor.fetchone()
            return row[0] if row else None

        yield ask


async def run(connection_string: str, statement: str = "SELECT 1") -> Any:
    """The same in a session of its own."""
    async with session(connection_string) as ask:
        return await ask(statement)


async def is_refused(connection_string: str) -> bool:
    """Whether a login with it is refused, for whatever it says."""
    try:
        await run(connection_string)
    except REFUSED:
        return True
    return False


async def rotate(caller: Caller, made: dict[str, Any], *, key: str | None = None, **fields: Any) -> dict[str, Any]:
    answer = await caller.post(f"/databases/{made['uuid']}/credential_rotations", fields, key=key)
    data: dict[str, Any] = data_of(answer)
    return data


async def add_user(caller: Caller, made: dict[str, Any], name: str, **fields: Any) -> dict[str, Any]:
    fields.setdefault("access", "read_write")
    answer = await caller.post(f"/databases/{made['uuid']}/users", {"name": name, **fields})
    data: dict[str, Any] = data_of(answer, 201)
    return data


async def credentials(caller: Caller, made: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = data_of(await caller.get(f"/databases/{made['uuid']}/credentials"))
    return found


async def rotation_now(caller: Caller, rotation: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = data_of(await caller.get(f"/credential_rotations/{rotation['uuid']}"))
    return found


async def payloads(made: dict[str, Any]) -> list[tuple[str, str]]:
    """Its events, as type and what is sent."""
    rows = await fetch(
        "SELECT e.type, e.payload::text FROM events e JOIN databases d ON d.id = e.database_id WHERE d.uuid = $1"
        " ORDER BY e.id",
        UUID(made["uuid"]),
    )
    return [(row["type"], row["payload"]) for row in rows]


def with_password(connection_string: str, password: str) -> str:
    parts = urlsplit(connection_string)
    return urlunsplit(parts._replace(netloc=f"{parts.username}:{password}@{parts.hostname}:{parts.port}"))
