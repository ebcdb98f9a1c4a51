"""Samples count as taken at the time of the workflow's clock, on a server that skips over the turn of a month."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from app.contracts.queues import CONTROL_QUEUE
from app.contracts.quotas import EnforceQuotas, MeasureRegion
from tests.support.time_skipping import time_skipping
from tests.workflows.fakes import Script
from tests.workflows.stage import workers

LATER = timedelta(days=40)


async def test_a_run_in_another_month_measures_in_that_month() -> None:
    async with time_skipping() as client:
        script, began = Script(), datetime.now(UTC)
        async with workers(client, script):
            for delay in (timedelta(0), LATER):
                handle = await client.start_workflow(
                    EnforceQuotas.run, id=f"test/{uuid4()}", task_queue=CONTROL_QUEUE, start_delay=delay
                )
                await asyncio.wait_for(handle.result(), 60)
    now, later = (request.at for request in script.arguments if isinstance(request, MeasureRegion))
    assert timedelta(0) <= now - began < timedelta(minutes=1)
    assert timedelta(0) <= later - began - LATER < timedelta(minutes=1)
    assert (now.year, now.month) != (later.year, later.month)
