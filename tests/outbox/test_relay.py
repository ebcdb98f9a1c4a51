"""The relay: starts what nobody else has started, and does not hammer a Temporal that is away."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio.client import Client

from app.core.temporal import connect
from app.local.ports import LOOPBACK
from app.local.temporal import TemporalService
from app.store.session import fetch
from tests.support.pending_starts import make_due, pending_ids, request_pending
from tests.support.ports import free_port
from tests.support.waiting import until
from workers.relay import relay
from workers.search_attributes import register_search_attributes


@asynccontextmanager
async def relaying(client: Client) -> AsyncIterator[None]:
    task = asyncio.create_task(relay(client))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def request_due(count: int) -> None:
    for _ in range(count):
        await request_pending()
    await make_due()


async def all_started() -> bool:
    return not await pending_ids()


async def test_two_relays_start_every_workflow(own_store: None, temporal_server: TemporalService) -> None:
    client = await connect(temporal_server.address, "default")
    await register_search_attributes(client)
    await request_due(60)
    async with relaying(client), relaying(client):
        await until(all_started)


async def test_temporal_away_and_back(own_store: None, temporal_server: TemporalService) -> None:
    client = await connect(temporal_server.address, "default")
    await register_search_attributes(client)
    await request_due(1)
    away = await connect(f"{LOOPBACK}:{free_port()}", "default", lazy=True)
    (due,) = await fetch("SELECT next_attempt_at FROM workflow_starts")
    async with relaying(away):
        await until(lambda: fetch("SELECT 1 FROM workflow_starts WHERE attempts >= 3 AND last_error IS NOT NULL"))
    (row,) = await fetch("SELECT attempts, next_attempt_at FROM workflow_starts")
    # They grow no further: on a slow machine there are more than three attempts.
    pauses = [min(0.5 * 2**number, 3.0) for number in range(row["attempts"])]
    assert (row["next_attempt_at"] - due["next_attempt_at"]).total_seconds() >= sum(pauses)
    async with relaying(client):
        await until(all_started)
