"""A database of each engine with a few tables, and a caller who may ask about it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.e2e.hosts import mysql, postgres
from tests.engines.conftest import engine_server as engine_server
from tests.engines.conftest import host as host
from tests.support.client import Caller
from tests.support.model_server import script
from tests.support.service import RunningService
from tests.support.waiting import until

UNREACHABLE = "The database can't be reached."
"""What the API says when a host of a crowded machine doesn't let it in within the time that it has to connect."""

SCHEMA = (
    "CREATE TABLE customers (id BIGINT PRIMARY KEY, name VARCHAR(100) NOT NULL, country CHAR(2))",
    "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer_id BIGINT, total DECIMAL(12,2), status VARCHAR(20),"
    " FOREIGN KEY (customer_id) REFERENCES customers (id))",
    "INSERT INTO customers VALUES (1, 'Zed', 'NO'), (2, 'Yara', 'BR')",
    "INSERT INTO orders VALUES (1, 1, 50.00, 'paid'), (7, 2, 200.10, 'paid'), (8, 2, 20.00, 'cancelled')",
)


async def unless_refused(ask: Callable[[], Awaitable[httpx.Response]], refusal: str = UNREACHABLE) -> httpx.Response:
    """Asks again where the answer is this refusal, which comes before any statement has run."""

    async def answered() -> httpx.Response | None:
        answer = await ask()
        return None if answer.status_code == 503 and refusal in answer.json()["error"]["message"] else answer

    answer = await until(answered)
    assert answer is not None, "`until` waits for one"
    return answer


@dataclass(frozen=True)
class Asked:
    """A database, and who may ask about it."""

    caller: Caller
    database: dict[str, Any]

    @property
    def is_postgres(self) -> bool:
        return bool(self.database["db_type"] == "postgres")

    async def ask(self, *turns: Any, question: str | None = None) -> httpx.Response:
        """`turns` are what the model is to answer; `question` is asked as it is."""
        return await unless_refused(lambda: self.ask_once(*turns, question=question))

    async def ask_once(self, *turns: Any, question: str | None = None) -> httpx.Response:
        """Where the very first answer matters, for the login itself is what is tested."""
        body = {"database_uuid": self.database["uuid"], "query": question or script(*turns)}
        return await self.caller.request("POST", "/query_executions", json=body)

    async def run(self, *statements: str) -> list[Any]:
        """As the tenant itself; the rows of the last."""
        dsn = self.database["connection_string"]
        rows: list[Any] = []
        if self.is_postgres:
            async with postgres(dsn) as connection:
                for statement in statements:
                    rows = [tuple(row) for row in await connection.fetch(statement)]
            return rows
        async with mysql(dsn) as cursor:
            for statement in statements:
                await cursor.execute(statement)
                rows = list(await cursor.fetchall())
        return rows


async def database_of(
    service: RunningService, engine: str, *, tier: str = "enterprise", tables: tuple[str, ...] = SCHEMA
) -> Asked:
    caller = await service.caller(tier=tier)
    asked = Asked(caller, await caller.created(db_type=engine))
    await asked.run(*tables)
    return asked


@pytest_asyncio.fixture(scope="session")
async def on_postgres(service: RunningService) -> Asked:
    return await database_of(service, "postgres")


@pytest_asyncio.fixture(scope="session")
async def on_mysql(service: RunningService) -> Asked:
    if service.mysql is None:
        pytest.skip("no MySQL or MariaDB server on this machine")
    return await database_of(service, "mysql")


@pytest.fixture(params=["postgres", "mysql"])
def asked(request: pytest.FixtureRequest) -> Asked:
    """Of each engine in turn. Shared: what a test adds, it takes away."""
    made: Asked = request.getfixturevalue(f"on_{request.param}")
    return made
