"""Every committed event is delivered: whoever dies between its commit and its arrival."""

import asyncio
from pathlib import Path
from uuid import uuid4

import httpx

from app.local.ports import LOOPBACK
from app.local.services import start
from app.local.temporal import TemporalService, find_program
from app.store.session import fetch
from app.webhooks.dispatch import dispatch
from tests.servers import RunningServer
from tests.support.client import Caller
from tests.support.forks import ForkedApi
from tests.support.ports import free_port
from tests.support.receiver import Receiver
from tests.support.store import copy_of
from tests.support.waiting import until
from tests.support.webhooks import CONTROL, WEBHOOKS, Delivering, delivering, emit, path, subscribed


async def arrive(target: Receiver, where: str, count: int) -> None:
    async def all_of_them() -> bool:
        return len({got.headers["webhook-id"] for got in target.of(where)}) == count

    await until(all_of_them)


async def test_the_api_is_killed_after_its_commit(running: Delivering, target: Receiver) -> None:
    """It answers nobody, and starts nothing any more."""
    caller, where, port = await running.api.caller(), path(), free_port()
    await subscribed(caller, target.url(where))
    environ = {**running.environ, "HEADWATER_API_PORT": str(port), "HEADWATER_POOL_SIZE": "0"}
    api = ForkedApi("api", port=port, log=running.folder / "api.log", environ=lambda: environ, host=LOOPBACK)
    process = await start(api)
    try:
        async with httpx.AsyncClient(base_url=api.url, timeout=30) as http:
            other = Caller(http, caller.api_key, caller.user_id, caller.team_id, caller.key_id)
            async with running.frozen(WEBHOOKS):
                asked = asyncio.create_task(other.create("doomed", wait=True, key=str(uuid4())))
                await until(lambda: fetch("SELECT 1 FROM events WHERE team_id = $1", caller.team_id))
                await process.kill()
                (lost,) = await asyncio.gather(asked, return_exceptions=True)
                assert isinstance(lost, httpx.HTTPError)
                assert target.of(where) == []
        await arrive(target, where, 1)
    finally:
        await process.stop(timeout=5)


async def test_a_worker_dies_between_dispatching_and_sending(running: Delivering, target: Receiver) -> None:
    """This process plays the worker: it commits deliveries, and does nothing more."""
    caller, where = await running.api.caller(), path()
    await subscribed(caller, target.url(where))
    await running.kill(WEBHOOKS)
    try:
        for number in range(5):
            await emit(caller, number)
        assert await dispatch(100, first_wait=0) == 5
    finally:
        await running.start(WEBHOOKS)
    await arrive(target, where, 5)


async def test_both_workers_are_killed_at_once(running: Delivering, target: Receiver) -> None:
    caller, where = await running.api.caller(), path()
    await subscribed(caller, target.url(where))
    for number in range(20):
        await emit(caller, number)
    await running.kill(CONTROL)
    await running.kill(WEBHOOKS)
    await emit(caller, 20)
    await running.start(CONTROL)
    await running.start(WEBHOOKS)
    await arrive(target, where, 21)


async def test_temporal_is_away(
    control_server: RunningServer, migrated_dsn: str, target: Receiver, tmp_path: Path
) -> None:
    dsn = await copy_of(migrated_dsn, control_server.admin_dsn)
    temporal = TemporalService(
        "temporal",
        port=free_port(),
        ui_port=free_port(),
        log=tmp_path / "temporal.log",
        program=find_program(),
        database=tmp_path / "temporal.db",
    )
    child = await start(temporal)
    try:
        async with delivering(tmp_path, dsn, temporal, target) as running:
            caller, where = await running.api.caller(), path()
            await subscribed(caller, target.url(where))
            for number in range(10):
                await emit(caller, number)
            await child.kill()
            for number in range(10, 20):
                await emit(caller, number)
            await arrive(target, where, 20)
            child = await start(temporal)
    finally:
        await child.stop(timeout=2)
