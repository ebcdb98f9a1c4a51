"""The sweep as the running service does it."""

from datetime import timedelta
from uuid import uuid4

from app.core.temporal import connect
from app.store.session import fetch
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waiting import until


async def test_a_scheduled_run_removes_an_expired_key(service: RunningService, caller: Caller) -> None:
    key = str(uuid4())
    client = await connect(service.temporal.address, "default")
    async with store(service.control_dsn):
        made = await caller.created()
        await fetch(
            "UPDATE idempotency_keys SET key = $1, expires_at = now() - $2::interval WHERE resource = $3",
            key,
            timedelta(seconds=1),
            made["uuid"],
        )

        async def gone() -> bool:
            await client.get_schedule_handle("sweep").trigger()
            return not await fetch("SELECT 1 FROM idempotency_keys WHERE key = $1", key)

        await until(gone)
