"""From the id in an answer to everything that its request caused: the API's line, workflows, and workers' lines."""

import io
import json
from datetime import timedelta
from itertools import pairwise
from uuid import uuid4

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from app.contracts.base import Engine
from app.contracts.databases import DatabaseWorkflowInput
from app.core.temporal import connect
from app.local.temporal import TemporalService
from tests.logs.failing import FailAs, fail_as
from tests.logs.lines import Line, line_of, lines_of
from tests.support.answers import body_of
from tests.support.client import Caller
from tests.support.patient_worker import patient
from tests.support.service import RunningService
from tests.support.waited import WAIT, waited, waited_in_vain
from tests.support.waiting import LIMIT_SECONDS, until
from workers.log_ids import LogIds, ids_beside_messages
from workers.runner import sandbox


async def workflows_of(client: Client, request_id: str) -> list[str]:
    """As an operator finds them in Temporal's list."""

    async def look() -> list[str]:
        return [one.id async for one in client.list_workflows(f"HeadwaterRequest = '{request_id}'")]

    return await until(look)


async def worker_lines(service: RunningService, request_id: str, activity: str) -> list[Line]:
    """Until the activity has succeeded."""

    async def look() -> list[Line]:
        found = [line for line in lines_of(service.folder / "worker.log") if line.get("request_id") == request_id]
        done = any((line.get("activity"), line.get("outcome")) == (activity, "ok") for line in found)
        return found if done else []

    return await until(look)


@pytest.mark.parametrize("engine", Engine)
async def test_of_a_create_and_of_a_deletion(service: RunningService, caller: Caller, engine: Engine) -> None:
    client = await connect(service.temporal.address, "default")
    created = await caller.create("logged", wait=True, db_type=engine.value)
    database = created.json()["data"]["uuid"]
    deleted = await caller.delete(f"/databases/{database}")
    steps = {
        (created, "ProvisionDatabase", f"provision-database/{database}"): "create_database",
        (deleted, "DeleteDatabase", f"delete-database/{database}"): "revoke_access",
    }
    for (answer, workflow_type, workflow_id), activity in steps.items():
        request_id = answer.json()["request_id"]
        assert (await line_of(service, request_id))["status"] == answer.status_code
        assert await workflows_of(client, request_id) == [workflow_id]
        lines = await worker_lines(service, request_id, activity)
        for line in lines:
            assert (line["workflow_id"], line["workflow_type"]) == (workflow_id, workflow_type)
            assert line["database"] == database
        *earlier, line = [line for line in lines if line.get("activity") == activity and line["event"] == "activity"]
        assert (line["outcome"], line["level"]) == ("ok", "info")
        # A local activity begins again with 1 in another task of its workflow.
        attempts = [one["attempt"] for one in (*earlier, line)]
        assert attempts[0] == 1
        assert all(after in (1, before + 1) for before, after in pairwise(attempts)), attempts


async def test_of_a_change_of_quotas(service: RunningService, caller: Caller) -> None:
    made = await caller.created()
    answer = await caller.patch(f"/databases/{made['uuid']}/quotas", {"connection_hard_limit": 3})
    lines = await worker_lines(service, answer.json()["request_id"], "apply_limits")
    assert {line["workflow_type"] for line in lines} == {"ApplyLimits"}
    assert {line["database"] for line in lines} == {made["uuid"]}


async def test_of_a_rotation(service: RunningService, caller: Caller) -> None:
    made = await caller.created()
    answer = await caller.post(f"/databases/{made['uuid']}/credential_rotations", {"overlap_seconds": 0})
    lines = await worker_lines(service, answer.json()["request_id"], "apply_credentials")
    assert {(line["workflow_type"], line["database"]) for line in lines} == {("ApplyCredentials", made["uuid"])}


async def test_of_backups_and_of_a_restore(service: RunningService, caller: Caller) -> None:
    """Also of the backup that is taken before the restore, which another process begins."""
    path = f"/databases/{(await caller.created())['uuid']}"
    backup = await waited(caller, await caller.post(f"{path}/backups", {}, params=WAIT), "/backups")
    await worker_lines(service, backup["request_id"], "take_backup")
    uuid = backup["data"]["uuid"]
    answer = await caller.post(f"/backups/{uuid}/restore_tests", None, params=WAIT)
    tested = body_of(answer, 202 if waited_in_vain(answer) else 201)
    await worker_lines(service, tested["request_id"], "prove_backup")
    answer = await caller.post(f"{path}/restorations", {"backup_uuid": uuid}, params=WAIT)
    restored = await waited(caller, answer, "/databases", status=200)
    for activity in ("prepare_restoration", "take_backup", "exchange_data", "open_database", "destroy_database"):
        await worker_lines(service, restored["request_id"], activity)


async def test_the_relay_keeps_it(service: RunningService, caller: Caller) -> None:
    """A workflow that another process starts, after the one that took the request died."""
    await service.kill("worker")
    try:
        answer = await caller.create("relayed")
    finally:
        await service.start("worker")
    request_id = answer.json()["request_id"]
    lines = await worker_lines(service, request_id, "create_database")
    assert {line["database"] for line in lines} == {answer.json()["data"]["uuid"]}


async def test_what_the_sdk_writes_has_them_too(temporal_server: TemporalService, json_log: io.StringIO) -> None:
    """Of workflows, in the sandbox, and of an activity's failure, which is told after all of ours has ended."""
    ids_beside_messages()
    client = await connect(temporal_server.address, "default")
    queue = f"logged-{uuid4()}"
    request = DatabaseWorkflowInput(
        database=uuid4(), engine=Engine.POSTGRES, region="nowhere-9", team_id=7, request_id="req_failing"
    )
    worker = Worker(
        client,
        task_queue=queue,
        workflows=[FailAs],
        activities=[fail_as],
        workflow_runner=sandbox(),
        interceptors=[LogIds()],
        build_id="logged",
    )
    async with patient(worker):
        long = timedelta(seconds=LIMIT_SECONDS)
        await client.execute_workflow(FailAs.run, request, id=queue, task_queue=queue, task_timeout=long)
    found = [json.loads(line) for line in json_log.getvalue().splitlines()]
    mine = [line for line in found if line.get("workflow_id") == queue]
    assert [(line["event"], line["level"]) for line in mine] == [
        ("it begins", "info"),
        ("activity", "warning"),
        ("Completing activity as failed", "warning"),
    ]
    assert {(line["request_id"], line["workflow_type"]) for line in mine} == {("req_failing", "FailAs")}
    assert {line["database"] for line in mine[1:]} == {str(request.database)}
    assert {line["activity"] for line in mine[1:]} == {"fail_as"}
    assert mine[1]["outcome"] == "Told"
    assert "as the test says" in mine[2]["exception"]
