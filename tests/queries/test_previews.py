"""Questions that are shown before they run: their SQL, its one execution, the record of both."""

import asyncio
from typing import Any

from app.store.session import execute
from tests.queries.conftest import Asked, database_of, unless_refused
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.model_server import script, sql
from tests.support.service import RunningService
from tests.support.store import store

INSERT = "INSERT INTO customers (id, name) VALUES (30, 'C')"


async def shown(asked: Asked, *turns: Any) -> Any:
    body = {"database_uuid": asked.database["uuid"], "query": script(*turns), "execute": False}
    return body_of(await unless_refused(lambda: asked.caller.request("POST", "/query_executions", json=body)))


async def run(asked: Asked, query: int) -> Any:
    return await asked.caller.request("POST", f"/query_executions/{query}/runs")


async def test_nothing_happens_before_it_is_run_and_then_once(asked: Asked) -> None:
    preview = await shown(asked, sql(INSERT, "write"))
    assert (preview["sql"], preview["result"]) == (INSERT, {"type": "write"})
    count = "SELECT count(*) FROM customers WHERE id = 30"
    assert await asked.run(count) == [(0,)]
    answers = await asyncio.gather(*(run(asked, preview["query_id"]) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]
    [done] = [body_of(answer) for answer in answers if answer.status_code == 200]
    assert (done["sql"], done["result"]) == (INSERT, {"type": "write", "affectedRows": 1})
    error_of(await run(asked, preview["query_id"]), 409, "query_already_executed")
    error_of(await run(asked, done["query_id"]), 409, "query_already_executed")
    assert await asked.run(count) == [(1,)]
    await asked.run("DELETE FROM customers WHERE id = 30", count)


async def test_rows_come_with_the_run(asked: Asked) -> None:
    preview = await shown(asked, sql("SELECT name FROM customers ORDER BY id"))
    assert preview["result"] == {"type": "select"}
    answer = body_of(await run(asked, preview["query_id"]))
    assert answer["result"]["rows"] == [{"name": "Zed"}, {"name": "Yara"}]
    listed = body_of(
        await asked.caller.get("/query_executions", params={"limit": "2", "database_uuid": asked.database["uuid"]})
    )["data"]
    assert [(one["id"], one["outcome"], one["row_count"]) for one in listed] == [
        (answer["query_id"], "succeeded", 2),
        (preview["query_id"], "executed", None),
    ]
    assert listed[0]["sql"] == listed[1]["sql"] == preview["sql"]
    assert "Yara" not in str(listed)


async def test_what_is_refused_is_never_shown_as_something_to_run(asked: Asked) -> None:
    body = {"database_uuid": asked.database["uuid"], "query": script(sql("DROP DATABASE x", "ddl")), "execute": False}
    error = error_of(await asked.caller.request("POST", "/query_executions", json=body), 422, "unsafe_sql")
    error_of(await run(asked, error["details"]["query_id"]), 409, "query_already_executed")


async def test_others_and_old_ones(service: RunningService, on_postgres: Asked) -> None:
    preview = await shown(on_postgres, sql("SELECT 1 AS n"))
    stranger = await service.caller()
    error_of(await stranger.request("POST", f"/query_executions/{preview['query_id']}/runs"), 404, "not_found")
    assert data_of(await stranger.get("/query_executions")) == []
    cursor = {"starting_after": str(preview["query_id"])}
    assert field_of(await stranger.get("/query_executions", params=cursor)) == "starting_after"
    path = f"/databases/{on_postgres.database['uuid']}/query_allowance"
    error_of(await stranger.get(path), 404, "not_found")
    async with store(service.control_dsn):
        aged = "UPDATE query_executions SET created_at = now() - interval '11 minutes' WHERE id = $1"
        await execute(aged, preview["query_id"])
    error_of(await run(on_postgres, preview["query_id"]), 409, "query_already_executed")


async def test_it_is_judged_by_what_the_team_may_now(service: RunningService) -> None:
    asked = await database_of(service, "postgres")
    preview = await shown(asked, sql(INSERT, "write"))
    async with store(service.control_dsn):
        await execute("UPDATE teams SET queries = 'read' WHERE id = $1", asked.caller.team_id)
    error_of(await run(asked, preview["query_id"]), 422, "unsafe_sql")
    assert await asked.run("SELECT count(*) FROM customers") == [(2,)]


async def test_a_run_takes_nothing_of_the_allowance(service: RunningService) -> None:
    asked = await database_of(service, "postgres", tier="free")
    path = f"/databases/{asked.database['uuid']}/query_allowance"
    before = data_of(await asked.caller.get(path))
    assert (before["per_day"], before["used"], before["remaining"]) == (10, 0, 10)
    preview = await shown(asked, sql("SELECT 1 AS n"))
    body_of(await run(asked, preview["query_id"]))
    after = data_of(await asked.caller.get(path))
    assert after == {**before, "used": 1, "remaining": 9, "team_id": asked.caller.team_id}
