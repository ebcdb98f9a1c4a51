"""Whose turn it is to have the space of deleted rows given back."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest_asyncio

from app.core.clock import utc_now
from app.quotas import reclaiming
from app.store.session import fetch
from tests.quotas.bench import Bench, bench
from tests.servers import RunningServer


@pytest_asyncio.fixture
async def on_bench(control_dsn: str, postgres_server: RunningServer) -> AsyncIterator[Bench]:
    async with bench(control_dsn, postgres_server) as made:
        yield made


async def test_what_takes_long_comes_again_later(on_bench: Bench) -> None:
    database = await _frozen(on_bench)
    async with reclaiming.turn(database):
        assert not await _listed(database)
    assert await _listed(database)
    async with reclaiming.turn(database, long_seconds=0):
        pass
    await _comes_later(database)


async def test_what_a_worker_died_with_comes_again_later(on_bench: Bench) -> None:
    database = await _frozen(on_bench)
    await reclaiming.turn(database).__aenter__()
    await _comes_later(database)


async def _frozen(on_bench: Bench) -> UUID:
    database = UUID((await on_bench.create())["uuid"])
    await on_bench.enforce(utc_now())
    await fetch("UPDATE databases SET frozen_at = now() WHERE uuid = $1", database)
    assert await _listed(database)
    return database


async def _listed(database: UUID) -> bool:
    return database in {one.database for one in await reclaiming.list_frozen()}


async def _comes_later(database: UUID) -> None:
    assert not await _listed(database)
    await fetch("UPDATE database_usage SET reclaimed_at = reclaimed_at - interval '10 minutes'")
    assert await _listed(database)
