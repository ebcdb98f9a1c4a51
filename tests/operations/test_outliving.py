"""Operations are told when Temporal has long forgotten their workflows."""

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from app.core.settings import Settings
from app.core.temporal import connect
from app.local.temporal import RETENTION
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.waiting import until


async def test_an_operation_outlives_its_workflow(service: RunningService, caller: Caller) -> None:
    made = await caller.created("db")
    (before,) = body_of(await caller.get("/operations", params={"database_uuid": made["uuid"]}))["data"]
    assert (before["type"], before["status"]) == ("create", "succeeded")
    client = await connect(service.temporal.address, service.namespace)

    async def status() -> WorkflowExecutionStatus | None:
        try:
            return (await client.get_workflow_handle(before["workflow_id"]).describe()).status
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return None

    async def is_completed() -> bool:
        return await status() is WorkflowExecutionStatus.COMPLETED

    async def is_forgotten() -> bool:
        return await status() is None

    # A worker begins a create before it starts its workflow.
    await until(is_completed)
    # As its retention does.
    await client.workflow_service.delete_workflow_execution(
        DeleteWorkflowExecutionRequest(
            namespace=service.namespace, workflow_execution=WorkflowExecution(workflow_id=before["workflow_id"])
        )
    )

    await until(is_forgotten)
    path = f"/operations/{before['uuid']}"
    assert data_of(await caller.get(path)) == before
    assert data_of(await caller.get(path, params={"wait": "true"})) == before
    refused = error_of(await caller.post(f"{path}/cancellations", {}), 409, "operation_not_cancellable")
    assert refused["details"]["status"] == "succeeded"
    data_of(await caller.delete(f"/databases/{made['uuid']}"))
    assert data_of(await caller.get(path)) == before


def test_they_are_retained_longer_than_workflows() -> None:
    assert Settings().operation_retention_seconds > RETENTION.total_seconds()
