"""Every alert, caused: a service is brought into the state that it is for, and the rules are evaluated over what its
page of metrics says then. What fires is compared exactly, so no state sets off what it is not for."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import pytest
import pytest_asyncio
import yaml
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from app.core.metrics.counters import HOST_RESOURCE_CAPACITY, HOST_RESOURCE_USED, set_shared_resource
from app.core.metrics.temporal_sdk import TemporalMetrics
from app.core.temporal import connect
from app.local.temporal import TemporalService
from app.store.session import fetch, fetch_scalar
from tests.observability import promtool
from tests.observability.promtool import Page
from tests.support.answers import data_of, error_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi, lone_api
from tests.support.moves import make_active
from tests.support.proxy import proxy
from tests.support.waiting import until
from workers.metrics import backlogs


@dataclass
class Service:
    api: LoneApi
    caller: Caller

    async def page(self) -> Page:
        answer = await self.api.http.get("/metrics")
        return promtool.page(answer.text)

    async def created(self, status: str | None = "active") -> UUID:
        """An active database, whose work nobody has done, or one as its create left it."""
        answer = await self.caller.create()
        uuid = UUID(answer.json()["data"]["uuid"])
        if status is not None:
            await make_active(str(uuid))
            await fetch("DELETE FROM workflow_starts")
        return uuid


@pytest_asyncio.fixture
async def service(control_dsn: str) -> AsyncIterator[Service]:
    async with lone_api(control_dsn, metrics_port=8000) as api:
        await api.add_host()
        yield Service(api, await api.caller())


async def _starts_wait(service: Service) -> None:
    await service.created(status=None)
    await fetch("UPDATE workflow_starts SET created_at = now() - interval '90 s'")


async def _events_wait(service: Service) -> None:
    await service.created()
    await fetch(
        "INSERT INTO events (uuid, type, team_id, payload, created_at)"
        " VALUES ($1, 'database.created', $2, '{}', now() - interval '90 s')",
        uuid4(),
        service.caller.team_id,
    )


async def _deliveries_wait(service: Service) -> None:
    await fetch(
        "INSERT INTO webhook_deliveries (webhook_id, endpoint_id, event_type, next_attempt_at, waiting)"
        " VALUES ('msg', $1, 'ping', now(), true)",
        await _endpoint(service),
    )


async def _receivers_hang(service: Service) -> None:
    endpoint = await _endpoint(service)
    await fetch("UPDATE webhook_endpoints SET slow_failures = 10, circuit_until = now() WHERE id = $1", endpoint)


async def _endpoint(service: Service) -> int:
    return await fetch_scalar(
        int,
        "INSERT INTO webhook_endpoints (team_id, url) VALUES ($1, 'https://a.example/') RETURNING id",
        service.caller.team_id,
    )


async def _pool_short(_: Service) -> None:
    await fetch("INSERT INTO pool_targets (region, engine, size) VALUES ('us-east-1', 'postgres', 7)")


async def _host_away(_: Service) -> None:
    await fetch("UPDATE engine_hosts SET sick_until = now() + interval '1 hour'")


async def _host_of_few_databases(service: Service) -> None:
    await service.created()
    await fetch("UPDATE engine_hosts SET capacity = 1")


async def _host_of_few_connections(service: Service) -> None:
    await service.created()
    await fetch("UPDATE engine_hosts SET connection_capacity = (SELECT max(connections) FROM databases)")
    await fetch("UPDATE engine_hosts SET connection_overcommit = 1")


async def _connections_short(_: Service) -> None:
    await fetch("INSERT INTO host_connections (host_id, open, short_since) SELECT id, 90, now() FROM engine_hosts")


async def _resource_scarce(_: Service) -> None:
    set_shared_resource("postgres", "db:5432", "locks", used=60, capacity=100)


async def _storage_unmeasured(service: Service) -> None:
    uuid = await service.created()
    await fetch(
        "INSERT INTO database_usage (database_id, storage_measured_at) SELECT id, now() - interval '20 min'"
        " FROM databases WHERE uuid = $1 ON CONFLICT (database_id) DO UPDATE"
        " SET storage_measured_at = excluded.storage_measured_at",
        uuid,
    )


async def _frozen(service: Service) -> None:
    await fetch("UPDATE databases SET frozen_at = now() WHERE uuid = $1", await service.created())


async def _backup_overdue(service: Service) -> None:
    await fetch(
        "INSERT INTO backup_policies (database_id, backup_at) SELECT id, now() - interval '2 hours'"
        " FROM databases WHERE uuid = $1",
        await service.created(),
    )


async def _backup_waits(service: Service) -> None:
    await _backup(service, "pending", "now() - interval '2 hours'")


async def _backup_bad(service: Service) -> None:
    await _backup(service, "completed", "now()")
    await fetch("UPDATE backups SET proof_status = 'mismatch'")


async def _backup_unproven(service: Service) -> None:
    database = await _backup(service, "completed", "now()")
    await fetch("UPDATE backups SET proven_at = now() - interval '50 days'")
    await fetch(
        "INSERT INTO backup_policies (database_id, backup_at) SELECT id, now() + interval '1 hour'"
        " FROM databases WHERE uuid = $1",
        database,
    )


async def _backup(service: Service, status: str, created_at: str) -> UUID:
    database = await service.created()
    await fetch(
        "INSERT INTO backups (uuid, team_id, database_id, database_uuid, database_name, engine, region, plan, quotas,"
        f" kind, status, priority, created_at, completed_at) SELECT $1, team_id, id, uuid, name, engine, region, plan,"
        f" '{{}}', 'manual', $3, 5, {created_at}, CASE WHEN $3 = 'completed' THEN now() END"
        " FROM databases WHERE uuid = $2",
        uuid4(),
        database,
        status,
    )
    return database


async def _finding(rule: str) -> None:
    await fetch("INSERT INTO findings (rule, subject, detail) VALUES ($1, 'x', '')", rule)


STATES: dict[str, Callable[[Service], Awaitable[object]]] = {
    "HeadwaterStartsWaiting": _starts_wait,
    "HeadwaterEventsWaiting": _events_wait,
    "HeadwaterDeliveriesWaiting": _deliveries_wait,
    "HeadwaterReceiversHang": _receivers_hang,
    "HeadwaterPoolShort": _pool_short,
    "HeadwaterHostAway": _host_away,
    "HeadwaterHostNearlyFull": _host_of_few_databases,
    "HeadwaterHostNearlyFull connections": _host_of_few_connections,
    "HeadwaterHostConnectionsShort": _connections_short,
    "HeadwaterHostResourceScarce": _resource_scarce,
    "HeadwaterStorageUnmeasured": _storage_unmeasured,
    "HeadwaterDatabasesFrozen": _frozen,
    "HeadwaterBackupsOverdue": _backup_overdue,
    "HeadwaterBackupsWaiting": _backup_waits,
    "HeadwaterBackupsUnproven": _backup_unproven,
    "HeadwaterBackupBad": _backup_bad,
    "HeadwaterOperationsOverdue": lambda _: _finding("operation_overdue"),
    "HeadwaterFindings": lambda _: _finding("host_unreachable"),
}
BY_OTHER_MEANS = {
    "HeadwaterProcessDown",
    "HeadwaterStoreDown",
    "HeadwaterRequestsFail",
    "HeadwaterReadsSlow",
    "HeadwaterQueueUnserved",
    "HeadwaterWorkflowTasksFail",
    "HeadwaterAuditUnsealed",
}
"""Each has a test of its own below."""


@pytest.fixture
def shared_resources() -> Iterator[None]:
    """They belong to the process."""
    yield
    HOST_RESOURCE_USED.clear()
    HOST_RESOURCE_CAPACITY.clear()


def test_every_alert_has_its_state() -> None:
    [group] = yaml.safe_load(promtool.RULES.read_text())["groups"]
    alerts = [rule["alert"] for rule in group["rules"]]
    assert {state.partition(" ")[0] for state in STATES} | BY_OTHER_MEANS == set(alerts)
    assert len(alerts) == len(set(alerts))
    for rule in group["rules"]:
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"].keys() == {"summary", "description"}


async def test_nothing_fires_while_all_is_well(service: Service, tmp_path: Path) -> None:
    await service.created()

    async def nothing_fires() -> bool:
        before = await service.page()
        assert (await service.caller.get("/databases")).status_code == 200
        return promtool.firing(tmp_path, before, await service.page()) == set()

    # On a machine with other work the one read may be slow, once.
    await until(nothing_fires)


@pytest.mark.usefixtures("shared_resources")
@pytest.mark.parametrize("state", STATES)
async def test_an_alert_fires_in_the_state_that_it_is_for(state: str, service: Service, tmp_path: Path) -> None:
    await STATES[state](service)
    page = await service.page()
    assert promtool.firing(tmp_path, page, page) == {state.partition(" ")[0]}


async def test_a_process_that_ended(tmp_path: Path) -> None:
    assert promtool.firing(tmp_path, {}, {}, up=False) == {"HeadwaterProcessDown"}


def without_durations(page: Page) -> Page:
    return {one: value for one, value in page.items() if one[0] != "headwater_http_request_duration_seconds_bucket"}


async def test_our_own_database_away(control_dsn: str, tmp_path: Path) -> None:
    async with proxy(control_dsn) as way, lone_api(way.dsn(control_dsn), metrics_port=8000) as api:
        service = Service(api, await api.caller())
        before = await service.page()
        await way.cut()
        for _ in range(3):
            assert (await service.caller.get("/databases")).status_code == 503
        during = await service.page()
        await way.restore()
        after = await service.page()
    # How long a request takes to be refused depends on the machine, and whether reads are slow is not asked here.
    before, during, after = map(without_durations, (before, during, after))
    assert promtool.firing(tmp_path, before, during) == {"HeadwaterStoreDown", "HeadwaterRequestsFail"}
    assert promtool.firing(tmp_path, before, after) == {"HeadwaterRequestsFail"}


_AWAITED = """
    SELECT EXISTS (
        SELECT 1 FROM pg_locks JOIN pg_database d ON d.oid = database
        WHERE datname = current_database() AND relation = 'databases'::regclass AND NOT granted
    )
"""


async def test_reads_that_take_long(service: Service, control_admin_dsn: str, tmp_path: Path) -> None:
    before = await service.page()
    connection = await asyncpg.connect(control_admin_dsn)
    try:
        async with connection.transaction():
            await connection.execute("LOCK TABLE databases")
            reading = asyncio.ensure_future(service.caller.get("/databases"))
            await until(lambda: connection.fetchval(_AWAITED))
            # It waits for the lock from before until after, and so long that it is slow.
            await connection.fetchval("SELECT pg_sleep(1.1)")
        assert (await reading).status_code == 200
    finally:
        await connection.close()
    assert promtool.firing(tmp_path, before, await service.page()) == {"HeadwaterReadsSlow"}


async def test_what_clients_ask_for_is_no_fault_of_ours(service: Service, tmp_path: Path) -> None:
    """They wait for an operation for as long as they like, and ask questions though no model is set."""
    operation = (await service.caller.create()).json()["operation"]["uuid"]
    question = {"database_uuid": str(await service.created()), "query": "How many?"}

    async def nothing_fires() -> bool:
        before = await service.page()
        waited = await service.caller.get(f"/operations/{operation}", params={"wait": "true", "timeout": "2"})
        assert data_of(waited)["finished_at"] is None
        error_of(await service.caller.post("/query_executions", question), 503, "language_model_unavailable")
        return promtool.firing(tmp_path, before, await service.page()) == set()

    # On a machine with other work a page itself may be slow, once.
    await until(nothing_fires)


async def test_an_event_that_nobody_seals(service: Service, tmp_path: Path) -> None:
    await service.created()
    page = await service.page()
    ages = ["headwater_audit_unsealed_oldest_age_seconds"]
    assert promtool.firing(tmp_path, page, page, ages=ages) == {"HeadwaterAuditUnsealed"}


# --- what workers tell ---


@workflow.defn
class FailingTask:
    @workflow.run
    async def run(self) -> None:
        raise ValueError("no failure of the workflow, but of its task")


class _Given(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


async def _worker_page(client: Client, sdk: TemporalMetrics, *queues: str) -> str:
    registry = CollectorRegistry()
    registry.register(_Given([*await sdk.collect(), *await backlogs(client, queues)]))
    return generate_latest(registry).decode()


async def test_a_queue_that_nobody_serves_and_tasks_that_fail(temporal_server: TemporalService, tmp_path: Path) -> None:
    sdk = TemporalMetrics()
    client = await connect(temporal_server.address, "default", runtime=sdk.runtime)
    queue, unserved = f"control-{uuid4()}", f"engine:{uuid4()}"
    started = [
        await client.start_workflow(FailingTask.run, id=f"{uuid4()}", task_queue=name) for name in (queue, unserved)
    ]
    before = promtool.page(await _worker_page(client, sdk, queue))
    try:
        async with Worker(
            client,
            task_queue=queue,
            workflows=[FailingTask],
            workflow_runner=UnsandboxedWorkflowRunner(),
            graceful_shutdown_timeout=timedelta(),
        ):

            async def told() -> str:
                text = await _worker_page(client, sdk, queue)
                return text if "temporal_workflow_task_execution_failed_total{" in text else ""

            text = await until(told)

        async def waiting() -> str:
            text = await _worker_page(client, sdk, unserved)
            samples = promtool.page(text).items()
            return text if any(one[0] == "headwater_task_queue_backlog" and value for one, value in samples) else ""

        backlog = promtool.page(await until(waiting))
    finally:
        for one in started:
            await one.terminate()
    assert promtool.firing(tmp_path, before, promtool.page(text)) == {"HeadwaterWorkflowTasksFail"}
    ages = ["headwater_task_queue_backlog_age_seconds"]
    only = {one: value for one, value in backlog.items() if one[0].startswith("headwater_task_queue")}
    waiting_ones = {one: value for one, value in only.items() if value}
    assert promtool.firing(tmp_path, only, waiting_ones, ages=ages) == {"HeadwaterQueueUnserved"}
