"""The week after which a member is replaced, by the clock of a Temporal server that skips time."""

from datetime import timedelta
from uuid import uuid4

import pytest
from temporalio import workflow
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.pool import PoolActivitiesOnStore
from app.contracts.queues import CONTROL_QUEUE, engine_queue
from app.core.settings import Settings
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch
from tests.support.lone_pool import LonePool
from tests.support.time_skipping import time_skipping
from tests.workflows.fakes import FakePoolHosts, Script
from workers.runner import activity_methods
from workflows.refill_pool import RefillPoolWorkflow

SETTINGS = Settings(pool_size=2)
WEEK = timedelta(seconds=SETTINGS.pool_max_age_seconds)


@workflow.defn
class RefillLater:
    """A refill as it will run after that many seconds."""

    @workflow.run
    async def run(self, seconds: float) -> None:
        await workflow.sleep(seconds)
        await RefillPoolWorkflow().run()


@pytest.mark.parametrize(("after", "begun"), [(WEEK - timedelta(minutes=5), 0), (WEEK + timedelta(minutes=1), 2)])
async def test_members_are_replaced_after_a_week(pool: LonePool, after: timedelta, begun: int) -> None:
    await pool.add_members(2, await pool.api.add_host())
    script = Script()
    async with (
        time_skipping() as client,
        Worker(
            client,
            task_queue=CONTROL_QUEUE,
            workflows=[RefillLater],
            activities=activity_methods(PoolActivitiesOnStore(DEFAULT_PLANS, pool.box, SETTINGS)),
            workflow_runner=UnsandboxedWorkflowRunner(),
        ),
        Worker(
            client,
            task_queue=engine_queue("us-east-1"),
            activities=activity_methods(FakePoolHosts(script)),
        ),
    ):
        await client.execute_workflow(
            RefillLater.run, after.total_seconds(), id=f"refill-later/{uuid4()}", task_queue=CONTROL_QUEUE
        )
    assert len(await fetch("SELECT 1 FROM databases WHERE status = 'provisioning'")) == begun
    assert len(await fetch("SELECT 1 FROM databases WHERE status = 'active'")) == 2
    assert script.calls == ["verify_members"], "they had not been tried for a week"
