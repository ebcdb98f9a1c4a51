"""Reconcile as the running service does it: found by the workflow, kept in our records, told to the metrics."""

from uuid import UUID, uuid4

import httpx
from temporalio.client import ScheduleActionExecutionStartWorkflow

from app.contracts.reconcile import ReconcileOutcome
from app.core.ids import engine_name, engine_password, marker
from app.core.temporal import connect
from app.engines.base import EngineLimits, Tenant
from app.local.ports import LOOPBACK
from app.store.session import fetch
from app.upkeep.reconcile.service import reconcile_records
from tests.support.client import Caller
from tests.support.metrics import scrape
from tests.support.service import RunningService
from tests.support.waiting import until
from tests.upkeep.reconcile.conftest import Bench


async def test_a_scheduled_run_finds_and_reports(bench: Bench) -> None:
    adapter = await bench.adapter()
    stray = Tenant(name=engine_name(), password=engine_password(), marker=marker(uuid4()))
    client = await connect(bench.running.temporal.address, bench.running.namespace)
    try:
        await adapter.create(stray, EngineLimits(connections=1))

        async def found() -> list[str]:
            await client.get_schedule_handle("reconcile").trigger()
            return await bench.findings(stray.name)

        assert await until(found) == ["orphan_on_host"]
        async with httpx.AsyncClient() as http:
            page = await scrape(http, f"http://{LOOPBACK}:{bench.running.worker.port}/metrics")
        assert page.value("headwater_findings", rule="orphan_on_host") >= 1
        description = await client.get_schedule_handle("reconcile").describe()
        run = description.info.recent_actions[-1].action
        assert isinstance(run, ScheduleActionExecutionStartWorkflow)
        handle = client.get_workflow_handle(run.workflow_id, result_type=ReconcileOutcome)
        outcome: ReconcileOutcome = await handle.result()
        assert "our own records" not in outcome.unchecked
        assert any(stray.name in sentence for sentence in outcome.messages)
    finally:
        await adapter.destroy(stray)


async def test_findings_about_our_own_records_come_and_go(
    service: RunningService, records: None, caller: Caller
) -> None:
    client = await connect(service.temporal.address, service.namespace)
    made = await caller.created()
    stuck = "status = 'provisioning', created_at = now() - interval '2 minutes'"
    try:
        for change, rules in ((stuck, ["provisioning_stuck"]), ("status = 'active'", [])):
            await fetch(f"UPDATE databases SET {change} WHERE uuid = $1", UUID(made["uuid"]))
            ran = await reconcile_records(client)
            assert bool(ran.findings.get("provisioning_stuck")) is bool(rules)
            rows = await fetch("SELECT rule FROM findings WHERE subject = $1 AND host_id IS NULL", made["uuid"])
            assert [row["rule"] for row in rows] == rules
    finally:
        await fetch("UPDATE databases SET status = 'active' WHERE uuid = $1", UUID(made["uuid"]))


async def test_an_operation_that_is_open_too_long_is_reported_and_ended_if_it_is_over(
    service: RunningService, records: None, caller: Caller
) -> None:
    client = await connect(service.temporal.address, service.namespace)
    made = UUID((await caller.created())["uuid"])
    await fetch(
        "UPDATE operations SET status = 'running', finished_at = NULL, deadline_at = now() - interval '1 s',"
        " changed_at = now() - interval '10 minutes' FROM databases d WHERE d.id = database_id AND d.uuid = $1",
        made,
    )
    ran = await reconcile_records(client)
    assert ran.findings["operation_overdue"] >= 1
    assert ran.findings["operation_astray"] >= 1
    assert any(sentence.startswith("Ended operation") and str(made) in sentence for sentence in ran.repairs)
    rows = await fetch(
        "SELECT o.status, count(e.id) AS told FROM operations o JOIN databases d ON d.id = o.database_id"
        " LEFT JOIN events e ON e.database_id = d.id AND e.type = 'operation.overdue'"
        " WHERE d.uuid = $1 GROUP BY o.id",
        made,
    )
    assert [tuple(row) for row in rows] == [("succeeded", 1)]
