"""One trace from a request to the statements on an engine host and to the receivers of webhooks, whatever dies on the
way."""

from uuid import UUID

import httpx
import pytest

from app.store.locks import database_lock
from tests.support.client import Caller
from tests.support.collector import Collector, SeenSpan, path_to
from tests.support.service import RunningService
from tests.support.signatures import verify
from tests.support.store import store
from tests.support.waiting import until
from tests.support.webhooks import subscribed

_WAY = ["POST /api/v1/databases", "start ProvisionDatabase", "workflow ProvisionDatabase", "activity create_database"]
_FIRST = [_WAY[0], "first attempt create_database"]
"""Which begins before the workflow is started."""


async def whole_trace(collector: Collector, uuid: str) -> list[SeenSpan]:
    """Of a create, when its workflow has ended: everything before has come then."""
    end = await collector.find("workflow ProvisionDatabase", headwater__database=uuid)
    await until(lambda: any(one.name == _WAY[0] for one in collector.of_trace(end.trace)))
    return collector.of_trace(end.trace)


def each_step_is_taken_once(spans: list[SeenSpan]) -> bool:
    """And none fails."""
    names = [one.name for one in spans]
    return names.count(_FIRST[-1]) == names.count(_WAY[-1]) == 1 and not any(one.failed for one in spans)


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
async def test_a_create_is_one_trace_down_to_its_statements(
    traced_service: RunningService, collector: Collector, engine: str
) -> None:
    if engine == "mysql" and traced_service.mysql is None:
        pytest.skip("no MySQL or MariaDB server on this machine")
    caller = await traced_service.caller()

    async def undisturbed() -> tuple[httpx.Response, list[SeenSpan]] | None:
        """A create, whose secrets are in no trace; None where a step of it was taken again, as on a crowded machine."""
        answer = await caller.create("secret-name-of-a-tenant", wait=True, db_type=engine)
        assert answer.status_code in (201, 202), answer.text
        database = answer.json()["data"]
        spans = await whole_trace(collector, database["uuid"])
        assert "secret-name-of-a-tenant" not in str(spans)
        if answer.status_code == 202:
            return None
        assert database["db_password"] not in str(spans)
        return (answer, spans) if each_step_is_taken_once(spans) else None

    seen = await until(undisturbed)
    assert seen is not None, "it was waited for"
    answer, spans = seen
    database = answer.json()["data"]
    step = next(one for one in spans if one.name == f"{engine} create_verified" or one.name == f"{engine} create")
    statement = next(one for one in spans if one.name == "CREATE DATABASE")
    assert path_to(spans, statement)[:2] == _FIRST
    assert path_to(spans, statement)[-1] == "CREATE DATABASE"
    (activity,) = (one for one in spans if one.name == _WAY[-1])
    assert path_to(spans, activity) == _WAY
    assert step.attributes["db.namespace"] == database["db_name"]
    assert {"db.system.name", "server.address", "server.port"} <= step.attributes.keys()
    (request,) = (one for one in spans if one.name == _WAY[0])
    assert request.parent == ""
    assert request.attributes["headwater.request_id"] == answer.headers["x-request-id"]
    assert request.attributes["headwater.key_id"] == caller.key_id
    assert request.attributes["headwater.team_id"] == caller.team_id
    assert {one.service for one in spans} == {"headwater-api", "headwater-worker"}
    assert all(one.began <= one.ended for one in spans)


async def test_webhooks_belong_to_the_trace_of_their_change(
    traced_service: RunningService, collector: Collector
) -> None:
    caller = await traced_service.caller()
    _, secret = await subscribed(caller, collector.receiver.url("/hooks"))
    answer = await caller.create("db", wait=True, db_type="postgres")
    uuid = answer.json()["data"]["uuid"]
    spans = await whole_trace(collector, uuid)
    trace = spans[0].trace
    await until(lambda: len(collector.receiver.of("/hooks")) >= 2)
    for request in collector.receiver.of("/hooks"):
        version, of_trace, span, flags = request.headers["traceparent"].split("-")
        assert (version, of_trace, flags) == ("00", trace, "01")
        sent = await collector.find("webhook", headwater__delivery=request.headers["webhook-id"])
        assert (sent.trace, sent.id) == (trace, span)
        assert sent.attributes["http.response.status_code"] == 200
        verify(request, secret)


async def test_one_trace_when_the_api_dies_before_the_workflow_starts_and_the_worker_in_the_middle(
    traced_service: RunningService, collector: Collector
) -> None:
    caller = await traced_service.caller()
    await traced_service.kill("worker")
    async with traced_service.another_api() as (http, process):
        mine = Caller(http, caller.api_key, caller.user_id, caller.team_id, caller.key_id)
        answer = await mine.create("db", db_type="postgres")
        assert answer.status_code == 202, answer.text
        uuid = answer.json()["data"]["uuid"]
        request = await collector.find(_WAY[0], headwater__request_id=answer.headers["x-request-id"])
        await process.kill()
    async with store(traced_service.control_dsn), database_lock(UUID(uuid)):
        await traced_service.start("worker")
        # The activity waits for the lock.
        await until(lambda: _is_under_way(caller, answer.json()["operation"]["uuid"]))
        await traced_service.kill("worker")
    await traced_service.start("worker")
    spans = await whole_trace(collector, uuid)
    assert {one.trace for one in spans} == {request.trace}
    statement = next(one for one in spans if one.name == "CREATE DATABASE")
    assert path_to(spans, statement)[:4] == _WAY
    assert len([one for one in spans if one.name == "workflow ProvisionDatabase"]) == 1


async def _is_under_way(caller: Caller, operation: str) -> bool:
    found = (await caller.get(f"/operations/{operation}")).json()["data"]
    return any(step["status"] == "running" for step in found["steps"])
