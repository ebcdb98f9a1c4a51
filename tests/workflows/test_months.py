"""Samples count as taken at the time of the workflow's clock, on a server that skips over the turn of a month."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from temporalio.testing import WorkflowEnvironment

from app.contracts.queues import CONTROL_QUEUE
from app.contracts.quotas import EnforceQuotas, MeasureRegion
from app.core.temporal import DATA_CONVERTER
from app.local.temporal import find_program
from tests.workflows.fakes import Script
from tests.workflows.stage import workers

LATER = timedelta(days=40)


async def test_a_run_in_another_month_measures_in_that_month() -> None:
    async with await WorkflowEnvironment.start_time_skipping_v2(
        data_converter=DATA_CONVERTER,
        dev_server_existing_path=str(find_program()),
        dev_server_extra_args=["--dynamic-config-value", "frontend.WorkflowTimeSkippingEnabled=true"],
    ) as environment:
        script, began = Script(), datetime.now(UTC)
        async with workers(environment.client, script):
            for delay in (timedelta(0), LATER):
                handle = await environment.client.start_workflow(
                    EnforceQuotas.run, id=f"test/{uuid4()}", task_queue=CONTROL_QUEUE, start_delay=delay
                )
                await asyncio.wait_for(handle.result(), 30)
    now, later = (request.at for request in script.arguments if isinstance(request, MeasureRegion))
    assert timedelta(0) <= now - began < timedelta(minutes=1)
    assert timedelta(0) <= later - began - LATER < timedelta(minutes=1)
    assert (now.year, now.month) != (later.year, later.month)
