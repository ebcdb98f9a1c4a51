"""Our own database goes away and comes back: 503 in between, and nothing half done."""

import asyncio

import pytest

from app.http import health
from app.http.health import Readiness
from app.store.session import fetch
from tests.support.answers import body_of, error_of
from tests.support.in_process import lone_api
from tests.support.proxy import proxy


async def test_a_database_that_is_away_and_back(control_dsn: str) -> None:
    async with proxy(control_dsn) as way, lone_api(way.dsn(control_dsn)) as api:
        await api.add_host()
        caller = await api.caller()
        await way.cut()
        for answer in (await caller.get("/databases"), await caller.create("a", key="k")):
            error_of(answer, 503, "service_unavailable")
            assert answer.headers["Retry-After"] == "5"
        assert (await api.http.get("/health/live")).status_code == 200
        assert (await api.http.get("/health/ready")).status_code == 503
        await way.restore()
        assert (await api.http.get("/health/ready")).status_code == 200
        body_of(await caller.create("a", key="k"), 202)
        assert len(await fetch("SELECT 1 FROM databases")) == 1


async def test_all_who_ask_at_once_whether_it_is_there_take_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    async def look(_: str) -> int:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0)
        return 1

    monkeypatch.setattr(health, "execute", look)
    readiness = Readiness()
    assert await asyncio.gather(*(readiness.is_ready() for _ in range(100))) == [True] * 100
    assert looks == 1
    assert await readiness.is_ready()
    assert looks == 2


async def test_a_lost_connection_costs_one_request_at_most(control_dsn: str) -> None:
    async with proxy(control_dsn) as way, lone_api(way.dsn(control_dsn)) as api:
        await api.add_host()
        caller = await api.caller()
        body_of(await caller.get("/databases"))
        await way.break_connections()
        first = await caller.get("/databases")
        assert first.status_code in (200, 503)
        body_of(await caller.get("/databases"))
