"""A claim has the pool refilled soon, without a workflow of its own."""

import asyncio
from datetime import datetime

import asyncpg
import pytest

from app.contracts.pool import RefillResult
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.databases.pool.claim import CHANNEL, RefillNotices
from app.databases.pool.refill import refill
from app.quotas.plans import Plans
from app.store.session import execute, fetch
from tests.support.answers import data_of
from tests.support.lone_pool import LonePool
from tests.support.waiting import until
from tests.support.worker_dependencies import tools
from workers import pool as worker

_BEGUN = "SELECT 1 FROM databases WHERE team_id IS NULL AND status = 'provisioning'"


async def test_what_was_claimed_is_begun_again(pool: LonePool, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    async def counted(plans: Plans, box: SecretBox, settings: Settings, now: datetime) -> RefillResult:
        nonlocal looks
        found = await refill(plans, box, settings, now)
        looks += 1
        return found

    monkeypatch.setattr(worker, "refill", counted)
    await pool.add_members(3, await pool.api.add_host())
    caller = await pool.api.caller()
    refilling = asyncio.create_task(
        worker.refill_claimed(tools(Settings(control_dsn=pool.api.control_dsn, pool_size=3)))
    )
    try:
        # Once at first, and once when it has begun to listen.
        await until(lambda: looks == 2)
        assert await fetch(_BEGUN) == []
        data_of(await caller.create(), 201)
        await until(lambda: fetch(_BEGUN))
    finally:
        refilling.cancel()
        await asyncio.gather(refilling, return_exceptions=True)
    assert len(await fetch(_BEGUN)) == 1


async def test_a_hundred_claims_at_once_are_one_notice(pool: LonePool) -> None:
    heard: list[str] = []
    listener, notices = await asyncpg.connect(pool.api.control_dsn), RefillNotices()
    try:
        await listener.add_listener(CHANNEL, lambda *notice: heard.append(notice[-1]))
        for _ in range(100):
            notices.send_soon()
        await notices.close()
        # Notices come in the order of their commits, so whatever was sent has come before this one.
        await execute("SELECT pg_notify($1, 'the last')", CHANNEL)
        await until(lambda: "the last" in heard)
    finally:
        await listener.close()
    assert heard == ["", "the last"]
