"""Lines of the core of Temporal's SDK, which by itself writes them in a format of its own."""

import asyncio
import io
import json
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from temporalio import activity
from temporalio.runtime import Runtime
from temporalio.worker import Worker

from app.contracts.base import Engine
from app.contracts.databases import DatabaseWorkflowInput
from app.core.metrics.temporal_sdk import TemporalMetrics
from app.core.temporal import connect
from app.local.temporal import TemporalService
from tests.logs.failing import FailAs
from tests.logs.lines import Line
from tests.support.patient_worker import patient
from tests.support.service import SharedServers
from tests.support.waiting import until
from workers.runner import sandbox


def shared() -> Runtime | None:
    """The API's, the command's, and that of a worker without a port for metrics."""
    return None


def with_metrics() -> Runtime | None:
    return TemporalMetrics().runtime


@pytest.mark.parametrize("runtime", [shared, with_metrics])
async def test_they_have_the_form_of_all_others(
    temporal_server: TemporalService, json_log: io.StringIO, runtime: Callable[[], Runtime | None]
) -> None:
    """Temporal refuses the result of an activity whose workflow was terminated, and the core warns of it."""
    client = await connect(temporal_server.address, "default", runtime=runtime(), api_key="hunter2")
    running, terminated = asyncio.Event(), asyncio.Event()

    @activity.defn(name="fail_as")
    async def outlive_the_workflow() -> None:
        running.set()
        await terminated.wait()

    def warnings() -> list[Line]:
        lines = [json.loads(line) for line in json_log.getvalue().splitlines()]
        return [line for line in lines if line["logger"] == "temporalio.core"]

    queue = f"logged-{uuid4()}"
    request = DatabaseWorkflowInput(
        database=uuid4(), engine=Engine.POSTGRES, region="nowhere-9", team_id=7, request_id="req_1"
    )
    worker = Worker(
        client,
        task_queue=queue,
        workflows=[FailAs],
        activities=[outlive_the_workflow],
        workflow_runner=sandbox(),
        build_id="logged",
    )
    async with patient(worker):
        handle = await client.start_workflow(FailAs.run, request, id=queue, task_queue=queue)
        await running.wait()
        await handle.terminate()
        terminated.set()
        (line,) = await until(warnings)
    assert line["event"].startswith("Activity not found on completion")
    assert (line["level"], line["timestamp"][-1]) == ("warning", "Z")
    assert "workflow execution already completed" in line["details"]
    assert "hunter2" not in json_log.getvalue()


async def test_a_worker_says_that_it_is_ready_whatever_is_logged(shared_servers: SharedServers, tmp_path: Path) -> None:
    """Whoever starts it, as the embedded stack does, waits for that line."""
    async with shared_servers.service(tmp_path, LOG_LEVEL="error") as service:
        assert service.processes["worker"].returncode is None
        assert "worker_ready" in service.worker.log.read_text()
