"""How things ended, as this process counts them."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from prometheus_client import REGISTRY
from temporalio import activity, workflow
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from app.contracts.control import HostFailure
from app.core.temporal import connect
from app.databases import records
from app.local.temporal import TemporalService
from app.provisioning import lifecycle, replacing
from app.quotas.plans import DEFAULT_PLANS
from tests.support.in_process import LoneApi
from tests.support.moves import activate, make_active
from workers.interceptors import ActivityMetrics

POSTGRES = {"engine": "postgres", "region": "us-east-1"}
PROVISIONED = "headwater_provisioning_duration_seconds_count"
ACTIVITY = "headwater_activity_duration_seconds_count"
MOVED = "headwater_provisioning_moves_total"


def count(sample: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(sample, labels) or 0


async def _created(lone: LoneApi) -> str:
    answer = await (await lone.caller()).create()
    return str(answer.json()["data"]["uuid"])


async def test_provisionings_that_end_active_or_cancelled(lone: LoneApi) -> None:
    before = {outcome: count(PROVISIONED, outcome=outcome, **POSTGRES) for outcome in ("active", "cancelled")}
    for _ in range(2):
        uuid = await _created(lone)
        await make_active(uuid)
        await activate(UUID(uuid))
    await lifecycle.abandon_provisioning(DEFAULT_PLANS, UUID(await _created(lone)))
    assert count(PROVISIONED, outcome="active", **POSTGRES) == before["active"] + 2, "a repeated step counts once"
    assert count(PROVISIONED, outcome="cancelled", **POSTGRES) == before["cancelled"] + 1


async def test_moves_to_another_place(lone: LoneApi) -> None:
    await lone.add_host()
    reasons = ("host_failed", "name_taken")
    before = {reason: count(MOVED, reason=reason, **POSTGRES) for reason in reasons}
    for reason in reasons:
        record = await records.find(UUID(await _created(lone)))
        assert record is not None
        failure = HostFailure(
            database=record.uuid,
            placement=record.placement,
            name_taken=reason == "name_taken",
            reason="as the test says",
        )
        for _ in range(2):
            await replacing.replace_host(failure)
    assert {reason: count(MOVED, reason=reason, **POSTGRES) for reason in reasons} == {
        reason: value + 1 for reason, value in before.items()
    }


@activity.defn
async def end_as(how: str) -> None:
    if how != "ok":
        raise ApplicationError("as the test says", type=how or None, non_retryable=True)


@workflow.defn
class EndAs:
    @workflow.run
    async def run(self, how: str) -> None:
        await workflow.execute_activity(end_as, how, start_to_close_timeout=timedelta(seconds=30))


async def test_attempts_of_activities_by_outcome(temporal_server: TemporalService) -> None:
    client = await connect(temporal_server.address, "default")
    queue = f"counted-{uuid4()}"
    ends = {"ok": "ok", "HostUnavailable": "HostUnavailable", "": "failed"}
    async with Worker(
        client,
        task_queue=queue,
        workflows=[EndAs],
        activities=[end_as],
        workflow_runner=UnsandboxedWorkflowRunner(),
        interceptors=[ActivityMetrics()],
        build_id="counted",
    ):
        for how in ends:
            run = client.execute_workflow(EndAs.run, how, id=f"{queue}/{how}", task_queue=queue)
            if how == "ok":
                await run
                continue
            with pytest.raises(WorkflowFailureError):
                await run
    counted = {outcome: count(ACTIVITY, activity="end_as", outcome=outcome) for outcome in ends.values()}
    assert counted == dict.fromkeys(ends.values(), 1)
