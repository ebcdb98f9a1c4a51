"""One team's removals that last, on a real host: what becomes of everybody else's steps there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import pytest_asyncio
from temporalio.exceptions import ApplicationError

from activities.engine import EngineActivitiesOnHosts
from app.contracts.restores import SLOTS_TAKEN
from app.hosts.slots import HOST_SLOTS, TEAM_REMOVALS, TEAM_SLOTS, HostSlots
from app.outbox.provisionings import RunningProvisionings
from app.store.session import fetch
from tests.quotas.bench import REGION, Bench, bench
from tests.servers import RunningServer
from tests.support.client import Caller
from tests.support.waiting import ended, until


@pytest_asyncio.fixture
async def on_bench(control_dsn: str, postgres_server: RunningServer) -> AsyncIterator[Bench]:
    async with bench(control_dsn, postgres_server) as made:
        yield made


def _worker(on_bench: Bench) -> tuple[HostSlots, EngineActivitiesOnHosts]:
    """Of one process, whose patience is short."""
    slots = HostSlots(patience=0.5)
    running = RunningProvisionings()
    return slots, EngineActivitiesOnHosts(on_bench.plans, on_bench.box, on_bench.adapters, slots, running)


async def _created(on_bench: Bench, caller: Caller) -> dict[str, Any]:
    made: dict[str, Any] = (await caller.create(region=REGION)).json()["data"]
    await on_bench.steps.create_database(UUID(made["uuid"]))
    return made


async def _host_of(made: dict[str, Any]) -> tuple[int, int]:
    """The ids of the host and the team."""
    [row] = await fetch("SELECT host_id, team_id FROM databases WHERE uuid = $1", UUID(made["uuid"]))
    return row["host_id"], row["team_id"]


@asynccontextmanager
async def _undroppable(server: RunningServer, *databases: dict[str, Any]) -> AsyncIterator[asyncpg.Connection]:
    """To drop them waits until the end of the block, as for one with very many tables."""
    root = await asyncpg.connect(server.admin_dsn)
    try:
        async with root.transaction():
            for made in databases:
                await root.execute(f"COMMENT ON DATABASE {made['db_name']} IS 'held'")
            yield root
            await root.execute("ROLLBACK")
    finally:
        await root.close()


async def test_removals_of_one_team_leave_everybody_the_host(on_bench: Bench, postgres_server: RunningServer) -> None:
    greedy, other = await on_bench.api.caller(), await on_bench.api.caller()
    doomed = [await _created(on_bench, greedy) for _ in range(HOST_SLOTS)]
    kept, theirs, fresh = [await _created(on_bench, one) for one in (greedy, other, other)]
    uuids = [UUID(made["uuid"]) for made in doomed]
    await fetch(
        "UPDATE databases SET status = 'deleted', deleted_at = now(), revoked_at = now(), destroy_at = now()"
        " WHERE uuid = any($1::uuid[])",
        uuids,
    )
    _, steps = _worker(on_bench)
    async with _undroppable(postgres_server, *doomed):
        removals = [asyncio.create_task(steps.destroy_database(one)) for one in uuids]
        try:
            refused = await until(lambda: _refused(removals, HOST_SLOTS - TEAM_REMOVALS))
            assert refused == [(SLOTS_TAKEN, True)] * (HOST_SLOTS - TEAM_REMOVALS)
            # Another team's, and this one's, steps of other kinds.
            for made in (kept, theirs):
                await steps.apply_limits(UUID(made["uuid"]))
            await fetch("UPDATE databases SET status = 'provisioning' WHERE uuid = $1", UUID(fresh["uuid"]))
            await steps.create_database(UUID(fresh["uuid"]))
            # And another one's removal.
            await fetch(
                "UPDATE databases SET status = 'deleted', deleted_at = now(), destroy_at = now() WHERE uuid = $1",
                UUID(theirs["uuid"]),
            )
            await steps.destroy_database(UUID(theirs["uuid"]))
        finally:
            await ended(*removals)
    for one in uuids:
        await steps.destroy_database(one)


async def _refused(tasks: list[asyncio.Task[None]], count: int) -> list[tuple[str | None, bool]] | None:
    faults = [task.exception() for task in tasks if task.done()]
    kinds = [(fault.type, fault.non_retryable) for fault in faults if isinstance(fault, ApplicationError)]
    return kinds if len(faults) >= count else None


async def test_steps_of_one_team_leave_the_others_half_of_the_host(on_bench: Bench) -> None:
    slots, steps = _worker(on_bench)
    made, theirs = [await _created(on_bench, await on_bench.api.caller()) for _ in range(2)]
    host, team = await _host_of(made)
    async with AsyncExitStack() as held:
        for _ in range(TEAM_SLOTS):
            await held.enter_async_context(slots.team_slot(host, team))
        for step in (steps.apply_limits, steps.apply_access):
            with pytest.raises(ApplicationError) as refused:
                await step(UUID(made["uuid"]))
            assert (refused.value.type, refused.value.non_retryable) == (SLOTS_TAKEN, True)
            await step(UUID(theirs["uuid"]))
    await steps.apply_limits(UUID(made["uuid"]))
