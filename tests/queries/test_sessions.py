"""Sessions of questions that come at once: what they wait for, and what they leave to others meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from app.core.errors import DatabaseUnreachable
from app.engines.querying import READER_SESSIONS, QueryLimits
from app.hosts.adapters import Adapters
from app.queries import targets
from app.queries.sessions import Sessions
from app.queries.targets import QueryTarget
from app.quotas.plans import DEFAULT_PLANS
from app.store.locks import database_lock
from app.store.session import fetch
from tests.e2e.hosts import postgres
from tests.queries.conftest import Asked, database_of
from tests.support.principals import principal_of
from tests.support.service import RunningService
from tests.support.store import POOL, store
from tests.support.waiting import LIMIT_SECONDS, until


@asynccontextmanager
async def sessions_of(service: RunningService, asked: Asked) -> AsyncIterator[tuple[Sessions, QueryTarget]]:
    """Those of this process, and the database as a question finds it. This process's store is the service's
    meanwhile."""
    adapters = Adapters(service.box)
    sessions = Sessions(DEFAULT_PLANS, service.box, adapters, QueryLimits(seconds=30, rows=1))
    async with store(service.control_dsn):
        try:
            yield sessions, await targets.find(principal_of(asked.caller), UUID(asked.database["uuid"]))
        finally:
            await adapters.close()


async def lock_is_waited_for(connection: Any) -> bool:
    return bool(
        await connection.fetchval(
            "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
            " WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database()"
        )
    )


async def test_those_that_wait_for_a_databases_lock_leave_the_store_to_others(
    service: RunningService, on_postgres: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a crowded machine too all of them wait for as long as the lock is held.
    monkeypatch.setattr("app.store.locks.LOCK_WAIT_SECONDS", LIMIT_SECONDS)
    monkeypatch.setattr("app.queries.sessions.WAIT_SECONDS", LIMIT_SECONDS)
    async with (
        postgres(service.control_dsn) as looking,
        sessions_of(service, on_postgres) as (sessions, target),
        asyncio.TaskGroup() as group,
        database_lock(target.uuid),
    ):
        making = [group.create_task(sessions.make_reader(target)) for _ in range(POOL)]
        await until(lambda: lock_is_waited_for(looking))
        assert await fetch("SELECT 1")
    assert len({task.result() for task in making}) == 1


async def test_a_read_session_is_waited_for_a_while(
    service: RunningService, on_postgres: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with sessions_of(service, on_postgres) as (sessions, target), AsyncExitStack() as held:
        for _ in range(READER_SESSIONS - 1):
            await held.enter_async_context(sessions.reading(target))
        # From here on: on a crowded machine those before may take longer.
        monkeypatch.setattr("app.queries.sessions.WAIT_SECONDS", 0.1)
        with pytest.raises(DatabaseUnreachable, match="All connections of the database are taken"):
            async with asyncio.timeout(LIMIT_SECONDS), sessions.reading(target):
                pytest.fail("it is one more than there may be")


async def test_many_questions_that_find_another_password(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is restored once for all of them."""
    # On a crowded machine too the last of them has its turn.
    monkeypatch.setattr("app.store.locks.LOCK_WAIT_SECONDS", LIMIT_SECONDS)
    monkeypatch.setattr("app.queries.sessions.WAIT_SECONDS", LIMIT_SECONDS)
    asked = await database_of(service, "postgres")
    await asked.run("ALTER ROLE CURRENT_USER PASSWORD 'another'")
    async with sessions_of(service, asked) as (sessions, target):

        async def enter() -> None:
            async with sessions.writing(target):
                pass

        await asyncio.gather(*(enter() for _ in range(6)))
        restored = await fetch(
            "SELECT 1 FROM events e JOIN databases d ON d.id = e.database_id"
            " WHERE d.uuid = $1 AND e.type = 'database.password_restored'",
            UUID(asked.database["uuid"]),
        )
    assert len(restored) == 1
