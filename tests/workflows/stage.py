"""Plays scenarios: the real workflows in a real worker on a real Temporal server, with scripted activities."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.worker import Worker

from app.contracts.queues import CONTROL_QUEUE, WEBHOOK_QUEUE, backup_queue, engine_queue, restore_queue, workflow_queue
from tests.support.patient_worker import patient
from tests.support.waiting import LIMIT_SECONDS, until
from tests.workflows.fakes import FakeBackups, FakeFills, FakeProofs, Script, control_fakes, engine_fakes
from tests.workflows.scenario import Scenario
from tests.workflows.scenarios import REGION
from tests.workflows.webhook_fakes import FakeWebhooks
from workers.runner import activity_methods, sandbox
from workflows.registry import BACKUP_WORKFLOWS, CONTROL_WORKFLOWS, ENGINE_WORKFLOWS, WEBHOOK_WORKFLOWS

_IDENTITY = "stage"
"""In place of this machine's name, which histories would keep."""
Handle = WorkflowHandle[Any, Any]


@asynccontextmanager
async def workers(client: Client, script: Script) -> AsyncIterator[None]:
    """One for control, one for the engines of the test's region, one for its backups, one for its restores, one for
    webhooks."""
    async with AsyncExitStack() as stack:
        for queue, fakes, workflows in (
            (CONTROL_QUEUE, control_fakes(script), CONTROL_WORKFLOWS),
            (engine_queue(REGION), engine_fakes(script), ENGINE_WORKFLOWS),
            (backup_queue(REGION), [FakeBackups(script), FakeProofs(script)], BACKUP_WORKFLOWS),
            (restore_queue(REGION), [FakeBackups(script), FakeFills(script)], ()),
            (WEBHOOK_QUEUE, [FakeWebhooks(script)], WEBHOOK_WORKFLOWS),
        ):
            worker = Worker(
                client,
                task_queue=queue,
                workflows=workflows,
                activities=[method for fake in fakes for method in activity_methods(fake)],
                workflow_runner=sandbox(),
                # What hangs is to hear at once that it is cancelled, however long its heartbeat may be.
                max_heartbeat_throttle_interval=timedelta(seconds=0.1),
                build_id="stage",
                identity=_IDENTITY,
            )
            await stack.enter_async_context(patient(worker))
        yield


async def begin(client: Client, scenario: Scenario) -> Handle:
    name = scenario.workflow.__temporal_workflow_definition.name
    return await client.start_workflow(
        scenario.workflow.run,
        args=scenario.arguments,
        id=f"test/{uuid4()}",
        task_queue=workflow_queue(name, REGION),
        task_timeout=scenario.task_timeout,
    )


@dataclass(frozen=True)
class Played:
    handle: Handle
    details: str
    """What the workflow said of itself at its end."""


async def play(client: Client, scenario: Scenario, script: Script) -> Played:
    """To the end."""
    async with workers(client, script):
        handle = await begin(client, scenario)
        if scenario.cancel:
            await asyncio.wait_for(script.hanging.wait(), 60)
            await handle.cancel()
        if scenario.signal is not None:
            await asyncio.wait_for(script.hanging.wait(), 60)
            await handle.signal(scenario.signal)
        with contextlib.suppress(WorkflowFailureError):
            await asyncio.wait_for(handle.result(), 60)
        # Asked while a worker is there: it is the workflow that answers.
        return Played(handle, await details(handle))


async def details(handle: Handle) -> str:
    """What the workflow says of itself, as Temporal's pages show it."""
    metadata: WorkflowMetadata = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    return metadata.current_details


async def run_wholly(start: Callable[[], Awaitable[Handle]], region: str) -> None:
    """Runs what a Schedule starts, and again where a machine that stalled had it leave something to the next run. Of
    other regions, which may have no worker, it always does."""
    left = re.compile(rf"^({region}: )?left to the next run", re.IGNORECASE | re.MULTILINE)

    async def is_done() -> bool:
        handle = await start()
        await asyncio.wait_for(handle.result(), LIMIT_SECONDS)
        return not left.search(await details(handle))

    await until(is_done)


async def says(handle: Handle, words: str) -> str:
    """Waits until the workflow says something with these words in it, and returns all that it says."""

    async def look() -> str:
        said = await details(handle)
        return said if words in said else ""

    return await until(look)
