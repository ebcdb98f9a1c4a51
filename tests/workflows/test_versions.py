"""What a worker of another version is asked for, and doesn't know."""

from uuid import uuid4

import msgspec
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionStatus

from app.contracts.queues import workflow_queue
from tests.support.waiting import until
from tests.workflows.fakes import Script
from tests.workflows.scenarios import PROVISION, REGION, REMNANT, RESTORATION
from tests.workflows.stage import workers


async def test_an_input_that_says_more_is_left_to_whoever_understands_it(client: Client) -> None:
    script = Script()
    request = {**msgspec.to_builtins(REMNANT), "keep_data": True}
    async with workers(client, script):
        handle = await client.start_workflow(
            "RemoveRemnant", request, id=f"test/{uuid4()}", task_queue=workflow_queue("RemoveRemnant", REGION)
        )

        async def refused() -> bool:
            history = await handle.fetch_history()
            return any(event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED for event in history.events)

        await until(refused)
        assert (await handle.describe()).status is WorkflowExecutionStatus.RUNNING
        await handle.terminate()
    assert script.calls == []


def test_what_says_nothing_new_is_understood_by_all() -> None:
    assert "restoration" not in msgspec.to_builtins(PROVISION)
    filling = msgspec.structs.replace(PROVISION, restoration=RESTORATION)
    assert "restoration" in msgspec.to_builtins(filling)
