"""After the 200 of a DELETE not one statement succeeds, while the data stays for the grace period."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiomysql
import asyncpg
import pytest

from app.contracts.base import Engine
from app.local.stack_file import StackHost
from tests.e2e.audit import settled
from tests.e2e.chaos import ENGINES
from tests.e2e.hosts import login, mysql, objects, postgres
from tests.e2e.patient_client import client_of
from tests.support.stack import LiveStack
from tests.support.waiting import until

RECONNECTING = 3
FAILURES = 100
"""How often the tenant tries in vain after the answer."""
_DESTRUCTION = """
SELECT coalesce(destruction_began_at >= destroy_at, false) AS was_due FROM databases WHERE uuid = $1::uuid
"""


class Tenant:
    """A tenant who won't stop: one session held open in mid-transaction, and others that come back again and
    again. `successes` are the moments at which it sent statements that succeeded, `failures` those at which it began to
    connect in vain, or for a while."""

    def __init__(self, engine: str, address: str) -> None:
        self._engine = engine
        self._address = address
        self.successes: list[float] = []
        self.failures: list[float] = []
        self.held_ended = False
        self._over = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._hold())]
        tasks += [asyncio.create_task(self._come_back()) for _ in range(RECONNECTING)]
        try:
            yield
        finally:
            # The driver may swallow a cancellation that comes in the moment of an answer.
            self._over = True
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _hold(self) -> None:
        with suppress(Exception):
            async with self._session() as session:
                await self._say(session, "BEGIN")
                await self._write_for_ever(session)
        self.held_ended = True

    async def _come_back(self) -> None:
        while not self._over:
            began = time.monotonic()
            try:
                async with self._session() as session:
                    await self._write_for_ever(session)
            except Exception:
                self.failures.append(began)
            await asyncio.sleep(0.005)

    async def _write_for_ever(self, session: Any) -> None:
        while not self._over:
            await self._say(session, "INSERT INTO visits VALUES (2)")
            await asyncio.sleep(0.005)

    async def _say(self, session: Any, statement: str) -> None:
        sent = time.monotonic()
        await session.execute(statement)
        self.successes.append(sent)

    def _session(self) -> Any:
        return (postgres if self._engine == Engine.POSTGRES else mysql)(self._address)


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_deleted_database_answers_nobody_and_keeps_its_data_for_a_while(
    stack: LiveStack, engine: Engine
) -> None:
    host = next(host for host in stack.file.hosts if host.engine == engine)
    async with client_of(stack) as client:
        made = (await client.create(engine)).data
        await login(made["connection_string"])
        tenant = Tenant(engine, made["connection_string"])
        async with tenant.running():
            await until(lambda: len(tenant.successes) > 10)
            answer = await client.delete(made["uuid"])
            answered = time.monotonic()
            rows = await _rows(host, made["db_name"])
            (destruction,) = await stack.control(_DESTRUCTION, made["uuid"])
            await until(lambda: sum(began > answered for began in tenant.failures) >= FAILURES)
        assert answer.status == 200
        assert answer.data["destroy_scheduled_at"] is not None
    assert tenant.held_ended
    assert [moment for moment in tenant.successes if moment > answered] == []
    # On a slow machine its time may have been over when we looked.
    assert rows >= 1 or destruction["was_due"], "the data is gone before its time"
    await settled(stack)
    assert not [entry for entry in await objects(host) if made["db_name"] in entry]


async def _rows(host: StackHost, name: str) -> int:
    """As the full administrator, who alone can still look. Zero if the data is gone."""
    with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, aiomysql.MySQLError):
        return await _counted(host, name)
    return 0


async def _counted(host: StackHost, name: str) -> int:
    if host.engine == Engine.MYSQL:
        async with mysql(host.admin_dsn) as cursor:
            await cursor.execute(f"SELECT count(*) FROM {name}.visits")
            return int((await cursor.fetchone())[0])
    async with postgres(host.admin_dsn) as administrator:
        await administrator.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        try:
            async with postgres(host.admin_dsn.rpartition("/")[0] + f"/{name}") as inside:
                return int(await inside.fetchval("SELECT count(*) FROM visits"))
        finally:
            await administrator.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
