"""What an open workflow is at, told from what a real Temporal server says of it."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from uuid import uuid4

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from app.core.temporal import connect
from app.local.temporal import TemporalService
from app.upkeep.inventory.workflows import OpenWorkflow, WorkflowState, list_open
from tests.support.waiting import until

_AT_ONCE, _PATIENT = timedelta(0), timedelta(hours=1)


@activity.defn
async def fail() -> None:
    raise RuntimeError("the host does not answer")


@workflow.defn(name="FailingSample")
class FailingSample:
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(fail, start_to_close_timeout=timedelta(seconds=5))


@workflow.defn(name="WaitingSample")
class WaitingSample:
    @workflow.run
    async def run(self) -> None:
        await workflow.sleep(3600)


async def _client(temporal: TemporalService) -> Client:
    return await connect(temporal.address, "default")


def _seen(
    client: Client, workflow_id: str, patience: timedelta, state: WorkflowState, words: str = ""
) -> Callable[[], Awaitable[OpenWorkflow | None]]:
    async def look() -> OpenWorkflow | None:
        for one in await list_open(client, patience):
            if one.workflow_id == workflow_id and one.state is state and words in (one.reason or ""):
                return one
        return None

    return look


async def test_nobody_takes_its_task(temporal_server: TemporalService) -> None:
    client = await _client(temporal_server)
    name = f"sample/{uuid4()}"
    handle = await client.start_workflow("WaitingSample", id=name, task_queue="nobody")
    try:
        words = "no worker has taken its next task from nobody"
        await until(_seen(client, name, _PATIENT, WorkflowState.RUNNING, words))
        found = await until(_seen(client, name, _AT_ONCE, WorkflowState.STUCK, words))
        assert found is not None
        assert str(found.database) in name
    finally:
        await handle.terminate()


async def test_a_step_that_fails_and_a_timer(temporal_server: TemporalService) -> None:
    client, queue = await _client(temporal_server), f"samples-{uuid4()}"
    worker = Worker(
        client,
        task_queue=queue,
        workflows=[FailingSample, WaitingSample],
        activities=[fail],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    async with worker:
        failing = await client.start_workflow("FailingSample", id=f"failing/{uuid4()}", task_queue=queue)
        waiting = await client.start_workflow("WaitingSample", id=f"waiting/{uuid4()}", task_queue=queue)
        try:
            words = "times: the host does not answer"
            await until(_seen(client, failing.id, _PATIENT, WorkflowState.RUNNING, words))
            await until(_seen(client, failing.id, _AT_ONCE, WorkflowState.STUCK, words))
            await until(_seen(client, waiting.id, _AT_ONCE, WorkflowState.WAITING))
            order = [one.workflow_id for one in await list_open(client, _AT_ONCE)]
            assert order.index(failing.id) < order.index(waiting.id)
        finally:
            for handle in (failing, waiting):
                await handle.terminate()
