"""A month turns on a Temporal server that skips time, over the real workflow, our own database and a real host."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.quotas import QuotaActivitiesOnHosts, QuotaActivitiesOnStore
from app.contracts.base import DatabaseStatus, PauseReason
from app.contracts.queues import CONTROL_QUEUE, engine_queue
from app.core.settings import Settings
from app.quotas.plans import DEFAULT_PLANS
from app.quotas.usage import month_of
from app.store.session import fetch
from tests.quotas.bench import REGION, Bench, bench
from tests.quotas.tenant_session import refused
from tests.servers import RunningServer
from tests.support.time_skipping import time_skipping
from workers.runner import activity_methods
from workflows.enforce_quotas import EnforceQuotasWorkflow

LATER = timedelta(days=40)
HOURS = 100


@asynccontextmanager
async def _served(on_bench: Bench) -> AsyncIterator[Client]:
    async with (
        time_skipping() as client,
        Worker(
            client,
            task_queue=CONTROL_QUEUE,
            workflows=[EnforceQuotasWorkflow],
            activities=activity_methods(QuotaActivitiesOnStore(DEFAULT_PLANS)),
            workflow_runner=UnsandboxedWorkflowRunner(),
        ),
        Worker(
            client,
            task_queue=engine_queue(REGION),
            activities=activity_methods(
                QuotaActivitiesOnHosts(DEFAULT_PLANS, on_bench.box, on_bench.adapters, Settings())
            ),
        ),
    ):
        yield client


async def test_what_ran_out_of_hours_comes_back_when_the_month_turns(
    control_dsn: str, postgres_server: RunningServer
) -> None:
    async with bench(control_dsn, postgres_server) as on_bench, _served(on_bench) as client:
        made = await on_bench.create(tier="free")

        async def enforce(delay: timedelta = timedelta(0)) -> None:
            handle = await client.start_workflow(
                EnforceQuotasWorkflow.run, id=f"enforce/{uuid4()}", task_queue=CONTROL_QUEUE, start_delay=delay
            )
            await asyncio.wait_for(handle.result(), 60)

        await enforce()
        await fetch("UPDATE database_usage SET runtime_seconds = $1", HOURS * 3600.0)
        await enforce()
        paused = await on_bench.follow(made)
        assert (paused.status, paused.paused_reason) == (DatabaseStatus.PAUSED, PauseReason.RUNTIME)
        assert await refused(made)
        await enforce(LATER)
        assert (await on_bench.follow(made)).status is DatabaseStatus.ACTIVE
        assert not await refused(made)
        used = await on_bench.usage(made)
        assert (used["runtime_seconds"], used["runtime_month"]) == (0, month_of(datetime.now(UTC) + LATER))
