"""The metrics pages of the API and of a worker, read as Prometheus reads them."""

from app.contracts.queues import CONTROL_QUEUE, WEBHOOK_QUEUE, backup_queue, engine_queue, restore_queue
from app.local.ports import LOOPBACK
from tests.applications.support import applied
from tests.support.client import Caller
from tests.support.in_process import LoneApi, lone_api
from tests.support.metrics import Scrape, scrape
from tests.support.ports import free_port
from tests.support.proxy import proxy
from tests.support.service import REGION, RunningService
from tests.support.waiting import until

ROUTE = "/api/v1/databases/{uuid}"
ACTIVITY = "headwater_activity_duration_seconds_count"
POSTGRES = {"engine": "postgres", "region": REGION}


def _worker_page(service: RunningService) -> str:
    return f"http://{LOOPBACK}:{service.worker.port}/metrics"


async def test_requests_are_counted_by_route_method_and_status(service: RunningService, caller: Caller) -> None:
    before = await scrape(service.http)
    made = await caller.created()
    for _ in range(3):
        await caller.get(f"/databases/{made['uuid']}")
    await caller.get("/databases/no-such-thing")
    await service.http.get("/nowhere/at/all")
    await service.http.request("BREW", "/api/v1/me")
    after = await scrape(service.http)

    def more(**labels: str) -> float:
        name = "headwater_http_requests_total"
        return after.value(name, **labels) - before.value(name, **labels)

    assert more(method="POST", route="/api/v1/databases", status="201") == 1
    assert more(method="GET", route=ROUTE, status="200") == 3
    assert more(method="GET", route=ROUTE, status="404") == 1
    assert more(route="unmatched", status="404") >= 1
    assert after.value("headwater_http_request_duration_seconds_count", method="GET", route=ROUTE) >= 4
    assert "BREW" not in after.labels("headwater_http_requests_total", "method")
    assert made["uuid"] not in after.labels("headwater_http_requests_total", "route")


async def test_a_worker_counts_its_work(service: RunningService, caller: Caller) -> None:
    before = await scrape(service.http, _worker_page(service))
    earlier = before.value("temporal_workflow_completed_total", workflow_type="ProvisionDatabase")
    revoked_before = before.value(ACTIVITY, activity="revoke_access", outcome="ok")
    made = await caller.created()
    gone = await caller.created()
    await caller.delete(f"/databases/{gone['uuid']}")

    async def look() -> Scrape | None:
        page = await scrape(service.http, _worker_page(service))
        completed = page.value("temporal_workflow_completed_total", workflow_type="ProvisionDatabase")
        # A deletion is answered when access has ended; the step weighs what it left, and ends after that.
        revoked = page.value(ACTIVITY, activity="revoke_access", outcome="ok")
        # Empty when Temporal did not answer in time.
        asked = page.labels("headwater_task_queue_backlog", "queue")
        return page if completed >= earlier + 2 and revoked > revoked_before and asked else None

    after = await until(look)
    assert after is not None

    def more(name: str, **labels: str) -> float:
        return after.value(name, **labels) - before.value(name, **labels)

    assert more("headwater_provisioning_duration_seconds_count", outcome="active", **POSTGRES) >= 2
    assert more("headwater_provisioning_duration_seconds_sum", outcome="active", **POSTGRES) > 0
    assert more(ACTIVITY, activity="create_database", outcome="ok") >= 2
    queues = {CONTROL_QUEUE, WEBHOOK_QUEUE, engine_queue(REGION), backup_queue(REGION), restore_queue(REGION)}
    assert after.labels("headwater_task_queue_backlog", "queue") == queues
    assert after.value("temporal_worker_task_slots_available") > 0
    assert after.value("headwater_databases", status="active", **POSTGRES) >= 1
    assert made["uuid"] not in str(after.families)


async def test_the_api_counts_what_it_hands_to_temporal(service: RunningService, caller: Caller) -> None:
    made = await caller.created()
    assert (await caller.delete(f"/databases/{made['uuid']}")).status_code == 200
    page = await scrape(service.http)
    assert page.value("headwater_workflow_starts_total", workflow="DeleteDatabase", outcome="started") >= 1


async def test_a_port_of_its_own_keeps_the_page_off_the_public_one(service: RunningService) -> None:
    port = free_port()
    async with service.another_api(METRICS_PORT=str(port)) as (http, _):
        assert (await http.get("/metrics")).status_code == 404
        page = await scrape(http, f"http://{LOOPBACK}:{port}/metrics")
        assert page.value("headwater_store_up") == 1


async def test_without_the_setting_there_is_no_page(lone: LoneApi) -> None:
    assert (await lone.http.get("/metrics")).status_code == 404


async def test_a_page_can_be_asked_for_in_openmetrics(control_dsn: str) -> None:
    async with lone_api(control_dsn, metrics_port=8000) as api:
        answer = await api.http.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


async def test_while_our_database_is_away_the_page_says_so_and_shows_the_rest(control_dsn: str) -> None:
    async with proxy(control_dsn) as way, lone_api(way.dsn(control_dsn), metrics_port=8000) as api:
        await api.http.get("/health/live")
        await way.cut()
        page = await scrape(api.http)
        assert page.value("headwater_store_up") == 0
        assert page.value("headwater_http_requests_total", route="/health/live") >= 1
        assert "headwater_databases" not in page.families
        await way.restore()
        assert (await scrape(api.http)).value("headwater_store_up") == 1


async def test_while_our_database_says_nothing_the_page_says_so(control_dsn: str) -> None:
    async with proxy(control_dsn) as way, lone_api(way.dsn(control_dsn), metrics_port=8000) as api:

        async def says(up: int) -> bool:
            page = await scrape(api.http)
            return "headwater_store_up" in page.families and page.value("headwater_store_up") == up

        async def says_that_it_is_silent() -> bool:
            way.swallow()  # connections that were made since, too
            return await says(0)

        # On a crowded machine a page may come too late, once.
        await until(lambda: says(1))
        await until(says_that_it_is_silent)
        # The API's end would wait for what was asked.
        await way.cut()
        await way.restore()


async def test_a_worker_counts_applications(service: RunningService, caller: Caller) -> None:
    name = "headwater_application_duration_seconds_count"
    before = await scrape(service.http, _worker_page(service))
    made = await caller.created()
    await applied(caller, made, "CREATE TABLE a (n integer)")
    await applied(caller, made, "CREATE TABLE a (n integer)")
    await applied(caller, made, "CREATE TABLE b (n integer)", dry_run=True)

    async def counted() -> bool:
        # After the commit, of which the client is told at the same time.
        after = await scrape(service.http, _worker_page(service))
        return {
            outcome: after.value(name, outcome=outcome, **POSTGRES) - before.value(name, outcome=outcome, **POSTGRES)
            for outcome in ("completed", "failed", "rolled_back")
        } == {"completed": 1, "failed": 1, "rolled_back": 1}

    await until(counted)
