"""Workflows that an operator cancels, terminates or resets in the Temporal UI: each type, at each of its steps.

What was to be done is done all the same, is undone as a cancellation undoes it, or is a finding: nothing stays half
done and unsaid. The steps are those that a run takes; a workflow without a case here fails the first test.
"""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from time import monotonic
from typing import Any
from uuid import uuid4

import msgspec
import pytest
import pytest_asyncio
from temporalio.api.common.v1 import WorkflowExecution as ExecutionRef
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle

from app.contracts.base import Engine
from app.contracts.queues import CONTROL_QUEUE, WEBHOOK_QUEUE, backup_queue, engine_queue, restore_queue
from app.contracts.reconcile import HostRef
from app.contracts.upkeep import ScheduleId
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.core.temporal import connect
from app.hosts.adapters import Adapters
from app.hosts.changes import drain_host
from app.hosts.registration import NewHost, add_host
from app.local.ports import LOOPBACK
from app.local.temporal import TemporalService
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch
from app.upkeep.reconcile.schedules import check_schedules_at
from app.upkeep.reconcile.service import list_hosts, reconcile_records
from app.webhooks.attempts import Attempts
from app.webhooks.egress.sender import Sender
from tests import servers
from tests.servers import RunningServer
from tests.support.backups import folder_store
from tests.support.gates import Gates, NoneAhead, Run
from tests.support.namespaces import new_namespace
from tests.support.ports import free_port
from tests.support.provisioners import postgres_provisioner
from tests.support.service import REGION, running_service
from tests.support.store import store
from tests.support.waiting import LIMIT_SECONDS, until
from tests.upkeep.reconcile.by_hand import CASES
from tests.upkeep.reconcile.interrupted import Begun, Case, ServiceUnderTest
from workers.backups import serve_backups
from workers.deliveries import Deliveries
from workers.event_dispatcher import dispatch_events
from workers.provisionings import start_provisionings
from workers.queues import WorkerDependencies, queue_config
from workers.relay import relay
from workers.runner import build_worker
from workers.schedules import UPKEEP_SCHEDULES, put_schedule
from workers.search_attributes import register_search_attributes

QUEUES = (CONTROL_QUEUE, WEBHOOK_QUEUE, engine_queue(REGION), backup_queue(REGION), restore_queue(REGION))
OPERATIONS = ("cancel", "terminate", "reset")
GRACE = "grace period"
RECONCILE_SECONDS = 1.0
"""Between two reconciliations while something isn't settled yet."""
SELDOM = 10_000_000.0
"""Seconds: no scheduled run falls into a test by chance."""
RARELY = Settings(
    sweep_interval_seconds=SELDOM,
    refill_interval_seconds=SELDOM,
    reconcile_interval_seconds=SELDOM,
    quota_interval_seconds=SELDOM,
)
WAITING = [name for name, case in CASES.items() if case.waits]
FIRST_WAITING = list({CASES[name].workflow: name for name in reversed(WAITING)}.values())[::-1]
"""The first case of each workflow that waits."""


@pytest_asyncio.fixture(scope="module")
async def place(
    tmp_path_factory: pytest.TempPathFactory,
    control_server: RunningServer,
    temporal_server: TemporalService,
    postgres_server: RunningServer,
) -> AsyncIterator[ServiceUnderTest]:
    """The API is a process of its own, as always; the workers are here, where their steps can be held."""
    folder, namespace = tmp_path_factory.mktemp("by-hand"), await new_namespace(temporal_server)
    async with AsyncExitStack() as stack:
        another = await stack.enter_async_context(servers.postgres(tmp_path_factory.mktemp("another")))
        service = await stack.enter_async_context(
            running_service(
                folder,
                control_server,
                temporal_server,
                postgres_server,
                None,
                namespace=namespace,
                DELETION_GRACE_SECONDS="0",
            )
        )
        await service.kill("worker")
        await stack.enter_async_context(store(service.control_dsn))
        settings = msgspec.structs.replace(
            RARELY,
            control_dsn=service.control_dsn,
            secret_keys=service.secret_keys,
            temporal_address=temporal_server.address,
            temporal_namespace=namespace,
            pool_size=0,
            final_backups=False,
            webhook_retry_schedule=(0, 0),
        )
        gates = Gates()
        config = (await connect(temporal_server.address, namespace)).config()
        config["interceptors"] = [gates]
        client = Client(**config)
        await register_search_attributes(client)
        sender = Sender(settings)
        stack.push_async_callback(sender.close)
        deliveries = Deliveries(Attempts(service.box, sender, settings), settings)
        tools = WorkerDependencies(
            settings=settings,
            plans=DEFAULT_PLANS,
            box=service.box,
            adapters=Adapters(service.box),
            backup_store=folder_store(folder / "backups", service.box),
            first_attempts=NoneAhead(),
        )
        stack.push_async_callback(tools.adapters.close)
        for queue in QUEUES:
            await stack.enter_async_context(build_worker(client, queue, tools))
        for upkeep in UPKEEP_SCHEDULES:
            await put_schedule(client, settings, upkeep)
        serving_all = (
            relay(client),
            dispatch_events(settings, deliveries.changed),
            start_provisionings(client, tools, REGION),
            serve_backups(tools.backup_terms),
            deliveries.serve(),
        )
        background = [asyncio.create_task(one) for one in serving_all]
        host, other = await _hosts(service.box, another)
        made = ServiceUnderTest(
            await service.caller(), client, gates, service.box, tools.adapters, host, other, folder / "backups"
        )
        yield made
        await made.close()
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)


async def _hosts(box: SecretBox, another: RunningServer) -> list[HostRef]:
    """The service's, and the other one."""
    admin = await postgres_provisioner(another, "another-password")
    new = NewHost(
        engine=Engine.POSTGRES, region=REGION, admin=admin, public_host=another.host, public_port=another.port
    )
    await add_host(box, new)
    hosts = await list_hosts()
    await drain_host(hosts[1].host_id)
    return hosts


async def test_every_workflow_has_a_case() -> None:
    served = {one.__temporal_workflow_definition.name for queue in QUEUES for one in queue_config(queue).workflows}
    assert served == {case.workflow for case in CASES.values()}


async def test_schedules_that_are_paused_or_deleted_are_findings(place: ServiceUnderTest) -> None:
    assert {upkeep.id for upkeep in UPKEEP_SCHEDULES} == {schedule.value for schedule in ScheduleId}
    address, namespace = place.client.service_client.config.target_host, place.client.namespace
    settings = Settings(temporal_address=address, temporal_namespace=namespace)

    async def found() -> list[tuple[str, str]]:
        await reconcile_records(place.client)
        rows = await fetch("SELECT rule, subject FROM findings WHERE host_id IS NULL AND rule LIKE 'schedule%'")
        kept = [(row["rule"], row["subject"]) for row in rows]
        assert kept == [(one.rule, one.subject) for one in await check_schedules_at(settings)]
        return kept

    for upkeep in UPKEEP_SCHEDULES:
        handle = place.client.get_schedule_handle(upkeep.id)
        assert await found() == []
        await handle.pause(note="while the disk is changed")
        assert await found() == [("schedule_paused", upkeep.id)]
        [violation] = await check_schedules_at(settings)
        assert "while the disk is changed" in violation.detail
        await handle.delete()
        assert await found() == [("schedule_missing", upkeep.id)]
        await put_schedule(place.client, RARELY, upkeep)


async def test_a_temporal_that_is_away_is_a_violation() -> None:
    nobody = f"{LOOPBACK}:{free_port()}"
    assert [(one.rule, one.subject) for one in await check_schedules_at(Settings(temporal_address=nobody))] == [
        ("temporal_unreachable", nobody)
    ]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.in_the_run])
async def test_nothing_stays_half_done_and_unsaid(place: ServiceUnderTest, name: str) -> None:
    """One operation at each step, in turn: workflows of one step differ in theirs."""
    await _interrupt(place, CASES[name], 1, first=list(CASES).index(name))


@pytest.mark.parametrize("name", FIRST_WAITING)
async def test_nor_while_it_waits_for_what_is_away(place: ServiceUnderTest, name: str) -> None:
    """One operation of each workflow, in turn."""
    await _interrupt_waiting(place, CASES[name], OPERATIONS[FIRST_WAITING.index(name) % len(OPERATIONS)])


@pytest.mark.soak
@pytest.mark.parametrize("name", CASES)
async def test_every_operation_at_each_step(place: ServiceUnderTest, name: str) -> None:
    await _interrupt(place, CASES[name], len(OPERATIONS))


@pytest.mark.soak
@pytest.mark.parametrize("name", WAITING)
async def test_every_operation_on_one_that_waits(place: ServiceUnderTest, name: str) -> None:
    for operation in OPERATIONS:
        await _interrupt_waiting(place, CASES[name], operation)


async def test_a_deletion_in_its_grace_period(place: ServiceUnderTest) -> None:
    for operation in OPERATIONS:
        async with place.gates.holding("DeleteDatabase", "look_at_grace") as gate:
            begun = await CASES["DeleteDatabase"].begin(place)
            await asyncio.wait_for(gate.reached.wait(), LIMIT_SECONDS)
            database = gate.workflow_id.split("/")[1]
            await fetch("UPDATE databases SET destroy_at = now() + interval '1 hour' WHERE uuid::text = $1", database)
        handle = place.client.get_workflow_handle(gate.workflow_id)
        await until(lambda handle=handle: _has_begun_waiting(handle))  # type: ignore[misc]
        await _operate(handle, operation)
        await _check(place, handle, begun, f"{operation} in the {GRACE}")


async def _interrupt(place: ServiceUnderTest, case: Case, of_each: int, *, first: int = 0) -> None:
    steps = await _steps(place, case)
    assert steps
    for turn, step in enumerate(steps, first):
        for number in range(turn, turn + of_each):
            operation = OPERATIONS[number % len(OPERATIONS)]
            async with place.gates.holding(case.workflow, step) as gate:
                begun = await case.begin(place)
                await asyncio.wait_for(gate.reached.wait(), LIMIT_SECONDS)
                handle = place.client.get_workflow_handle(gate.workflow_id)
                await _operate(handle, operation)
                # Or the step would finish what nothing asks for any more.
                gate.dropped = operation == "terminate"
            await _check(place, handle, begun, f"{operation} at {step}")


async def _interrupt_waiting(place: ServiceUnderTest, case: Case, operation: str) -> None:
    assert case.waits is not None
    async with place.gates.holding(case.workflow, case.waits, away=True) as gate:
        begun = await case.begin(place)
        await asyncio.wait_for(gate.reached.wait(), LIMIT_SECONDS)
        handle = place.client.get_workflow_handle(gate.workflow_id)
        await until(lambda: _has_begun_waiting(handle))
        await _operate(handle, operation)
    await _check(place, handle, begun, f"{operation} while waiting to {case.waits}")


async def _steps(place: ServiceUnderTest, case: Case) -> list[str]:
    """Those of a run that nobody holds up."""
    known = set(place.gates.runs)
    begun = await case.begin(place)

    def new() -> dict[str, Run]:
        runs = place.gates.runs.items()
        return {run_id: run for run_id, run in runs if run.workflow == case.workflow and run_id not in known}

    async def ended() -> bool:
        # Asked for one by one: Temporal's lists are a moment behind.
        handles = [place.client.get_workflow_handle(run.workflow_id, run_id=run_id) for run_id, run in new().items()]
        states = [(await handle.describe()).status for handle in handles]
        return bool(states) and WorkflowExecutionStatus.RUNNING not in states

    await until(ended)
    await until(begun.settled)
    steps = dict.fromkeys(step for run in new().values() for step in run.steps)
    return [step for step in steps if step not in case.skipped]


async def _operate(handle: WorkflowHandle[Any, Any], operation: str) -> None:
    if operation == "cancel":
        await handle.cancel()
    elif operation == "terminate":
        await handle.terminate("by hand")
    else:
        await _reset(handle)


async def _reset(handle: WorkflowHandle[Any, Any]) -> None:
    """To its first decision. One that has made none can't be reset."""
    completed = [
        event.event_id
        async for event in handle.fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
    ]
    if completed:
        client: Client = handle._client
        await client.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace=client.namespace,
                workflow_execution=ExecutionRef(workflow_id=handle.id),
                reason="by hand",
                workflow_task_finish_event_id=completed[0],
                request_id=str(uuid4()),
            )
        )


async def _has_begun_waiting(handle: WorkflowHandle[Any, Any]) -> bool:
    kinds = [event.event_type async for event in handle.fetch_history_events()]
    return EventType.EVENT_TYPE_TIMER_STARTED in kinds


async def _check(place: ServiceUnderTest, handle: WorkflowHandle[Any, Any], begun: Begun, what: str) -> None:
    reconciled = -math.inf

    async def is_whole() -> bool:
        nonlocal reconciled
        # To hold all records against the hosts takes far longer than to look what became of one of them.
        if monotonic() - reconciled < RECONCILE_SECONDS and not await begun.settled():
            return False
        await begun.hurry()
        await place.reconcile()
        reconciled = monotonic()
        return bool(await begun.settled())

    try:
        await until(is_whole)
    except AssertionError as fault:
        status = (await handle.describe()).status
        raise AssertionError(f"{what}, {handle.id} is {status.name if status else None}: {fault}") from None
    assert (await handle.describe()).status is not WorkflowExecutionStatus.FAILED, what
