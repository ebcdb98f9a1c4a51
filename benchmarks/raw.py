"""The minimum for a database: the engine's own statements, one after the other, on an open connection."""

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import aiomysql
import asyncpg

from app.contracts.base import Engine
from app.local.stack_file import StackHost


class Raw(ABC):
    """Creates bare databases as the host's full administrator."""

    async def time_one(self) -> float:
        """Returns the seconds for an account, a database and a grant."""
        statements = self.statements(f"raw{secrets.token_hex(8)}", secrets.token_hex(16))
        started = time.perf_counter()
        for statement in statements:
            await self.run(statement)
        return time.perf_counter() - started

    @abstractmethod
    def statements(self, name: str, password: str) -> list[str]: ...

    @abstractmethod
    def new_password(self, name: str, password: str) -> str:
        """The statement that replaces an account's password."""

    @abstractmethod
    async def run(self, statement: str) -> None: ...


class RawPostgres(Raw):
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def statements(self, name: str, password: str) -> list[str]:
        return [
            f"CREATE ROLE {name} LOGIN PASSWORD '{password}'",
            f"CREATE DATABASE {name}",
            f"GRANT ALL ON DATABASE {name} TO {name}",
        ]

    def new_password(self, name: str, password: str) -> str:
        return f"ALTER ROLE {name} PASSWORD '{password}'"

    async def run(self, statement: str) -> None:
        await self._connection.execute(statement)


class RawMySQL(Raw):
    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def statements(self, name: str, password: str) -> list[str]:
        return [
            f"CREATE USER {name} IDENTIFIED BY '{password}'",
            f"CREATE DATABASE {name}",
            f"GRANT ALL ON {name}.* TO {name}",
        ]

    def new_password(self, name: str, password: str) -> str:
        return f"ALTER USER {name} IDENTIFIED BY '{password}'"

    async def run(self, statement: str) -> None:
        await self._cursor.execute(statement)


@asynccontextmanager
async def raw_on(host: StackHost) -> AsyncIterator[Raw]:
    if host.engine == Engine.POSTGRES:
        connection = await asyncpg.connect(host.admin_dsn)
        try:
            yield RawPostgres(connection)
        finally:
            await connection.close()
        return
    parts = urlsplit(host.admin_dsn)
    login = {"host": parts.hostname, "port": parts.port, "user": parts.username, "password": parts.password}
    connection = await aiomysql.connect(**login, autocommit=True)
    try:
        async with connection.cursor() as cursor:
            yield RawMySQL(cursor)
    finally:
        connection.close()
