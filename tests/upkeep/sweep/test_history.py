"""Events, deliveries and questions that are over stay for as long as the operator says, and no longer."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from app.outbox.events import delete_old_events
from app.store.session import fetch, transaction
from app.upkeep import sweep as service
from app.upkeep.sweep import Retention
from tests.support.waiting import until_day_is_long

KEPT = timedelta(days=30)
OLD, YOUNG = KEPT + timedelta(hours=1), KEPT - timedelta(hours=1)

pytestmark = pytest.mark.usefixtures("own_store")


async def _insert(table: str, **columns: Any) -> int:
    names, places = ", ".join(columns), ", ".join(f"${number + 1}" for number in range(len(columns)))
    rows = await fetch(f"INSERT INTO {table} ({names}) VALUES ({places}) RETURNING id", *columns.values())
    return int(rows[0]["id"])


async def _ago(table: str, column: str, row: int, age: timedelta) -> int:
    await fetch(f"UPDATE {table} SET {column} = now() - $2::interval WHERE id = $1", row, age)
    return row


async def _team() -> int:
    return await _insert("teams", name="A team")


async def _event(team: int, age: timedelta, *, dispatched: bool = True) -> int:
    event = await _insert("events", uuid=uuid4(), type="database.deleted", team_id=team, payload="{}")
    await _ago("events", "created_at", event, age)
    return await _ago("events", "dispatched_at", event, age) if dispatched else event


async def _delivery(team: int, event: int | None, age: timedelta, *, status: str = "delivered") -> int:
    endpoint = await _insert("webhook_endpoints", team_id=team, url="https://example.com")
    values = {"webhook_id": "msg", "endpoint_id": endpoint, "event_id": event, "event_type": "ping", "status": status}
    delivery = await _insert("webhook_deliveries", **values)
    await _insert("webhook_attempts", delivery_id=delivery, duration_ms=1)
    return delivery if status == "pending" else await _ago("webhook_deliveries", "finished_at", delivery, age)


async def _question(team: int, age: timedelta) -> int:
    values = {"team_id": team, "question": "How many?", "model": "m"}
    rows = await fetch(
        "INSERT INTO query_executions (team_id, question, model, reserved_until)"
        " VALUES ($1, $2, $3, now() - interval '1 s') RETURNING id",
        *values.values(),
    )
    return await _ago("query_executions", "created_at", int(rows[0]["id"]), age)


async def _ids(table: str) -> set[int]:
    return {row["id"] for row in await fetch(f"SELECT id FROM {table}")}


async def _sweep_all(retention: timedelta = KEPT, *, questions: timedelta = timedelta(0)) -> None:
    for what in service.list_kinds():
        await service.sweep(what, Retention(history=retention, questions=questions, operations=KEPT))


async def test_deliveries_go_with_their_attempts_when_they_have_been_over_for_long() -> None:
    team = await _team()
    kept = {
        await _delivery(team, await _event(team, OLD), YOUNG),
        await _delivery(team, await _event(team, OLD), OLD, status="pending"),
        await _delivery(team, None, YOUNG, status="failed"),
    }
    for status in ("delivered", "failed"):
        await _delivery(team, None, OLD, status=status)
    await _sweep_all()
    assert await _ids("webhook_deliveries") == kept
    assert len(await _ids("webhook_attempts")) == len(kept)


async def test_events_go_after_their_deliveries_and_never_before_their_dispatch() -> None:
    team = await _team()
    pending, young, unlisted = (
        await _event(team, OLD),
        await _event(team, YOUNG),
        await _event(team, OLD, dispatched=False),
    )
    await _delivery(team, pending, OLD, status="pending")
    delivered = await _event(team, OLD)
    await _delivery(team, delivered, OLD)
    await _event(team, OLD)
    await _sweep_all()
    assert await _ids("events") == {pending, young, unlisted}


async def test_old_events_go_without_a_look_at_all_deliveries() -> None:
    team = await _team()
    endpoint = await _insert("webhook_endpoints", team_id=team, url="https://example.com")
    await fetch(
        """
        WITH e AS (
            INSERT INTO events (uuid, type, team_id, payload, created_at, dispatched_at)
            SELECT gen_random_uuid(), 'database.deleted', $1, '{}', now() - $2::interval * (n > 20)::int, now()
            FROM generate_series(1, 3000) n RETURNING id
        )
        INSERT INTO webhook_deliveries (webhook_id, endpoint_id, event_id, event_type, status, finished_at)
        SELECT 'msg', $3, id, 'database.deleted', 'delivered', now() FROM e OFFSET 1000
        """,
        team,
        OLD,
        endpoint,
    )
    await fetch("ANALYZE events, webhook_deliveries")
    async with transaction():
        assert await delete_old_events(100, KEPT) == 100
        [seen] = await fetch(
            "SELECT seq_tup_read AS rows FROM pg_stat_xact_user_tables WHERE relname = 'webhook_deliveries'"
        )
        assert seen["rows"] == 0


async def test_questions_go_but_for_todays() -> None:
    await until_day_is_long()
    team = await _team()
    young = await _question(team, YOUNG)
    await _question(team, OLD)
    await _sweep_all(timedelta(0), questions=KEPT)
    assert await _ids("query_executions") == {young}
    today = await _question(team, timedelta(0))
    await _sweep_all()
    assert await _ids("query_executions") == {today}


async def test_replaced_secrets_go_when_nobody_can_still_ask_for_them() -> None:
    endpoint = await _insert("webhook_endpoints", team_id=await _team(), url="https://example.com")
    kept = set()
    for expires in ("NULL", "now() + interval '1 hour'", "now() - interval '1 day'", "now() - interval '3 days'"):
        secret = await _insert("webhook_secrets", uuid=uuid4(), endpoint_id=endpoint, secret_sealed=b"")
        await fetch(f"UPDATE webhook_secrets SET expires_at = {expires} WHERE id = $1", secret)
        kept.add(secret)
    await _sweep_all()
    assert await _ids("webhook_secrets") == kept - {secret}


async def _database(team: int) -> int:
    host = await _insert("engine_hosts", engine="postgres", region="r", host=uuid4().hex, port=1, admin_sealed=b"")
    values = {"team_id": team, "name": "db", "engine": "postgres", "region": "r", "plan": "free", "status": "active"}
    return await _insert("databases", uuid=uuid4(), host_id=host, engine_name=uuid4().hex, connections=1, **values)


async def _operation(team: int, *, ended: timedelta | None) -> int:
    about = {"uuid": uuid4(), "team_id": team, "database_id": await _database(team), "engine": "postgres"}
    status = "pending" if ended is None else "succeeded"
    operation = await _insert("operations", type="create", status=status, steps="[]", **about)
    await _ago("operations", "created_at", operation, OLD)
    return operation if ended is None else await _ago("operations", "finished_at", operation, ended)


async def test_operations_go_when_they_ended_long_ago_and_open_ones_never() -> None:
    team = await _team()
    kept = {await _operation(team, ended=YOUNG), await _operation(team, ended=None)}
    await _operation(team, ended=OLD)
    await _sweep_all()
    assert await _ids("operations") == kept


async def _blueprint(team: int) -> int:
    blueprint = await _insert("blueprints", uuid=uuid4(), team_id=team, name="A", slug=uuid4().hex)
    await _insert("blueprint_versions", blueprint_id=blueprint, version=1, sql_content="SELECT 1", size_bytes=8)
    return blueprint


async def _application(blueprint: int, database: int, *, ended: timedelta | None, statements: int = 1) -> int:
    about = {"blueprint_id": blueprint, "blueprint_version": 1, "database_id": database}
    application = await _insert("blueprint_applications", status="running" if ended is None else "completed", **about)
    for index in range(statements):
        entry = {"application_id": application, "index": index, "line": 1, "kind": "select", "sql": "SELECT 1"}
        await _insert("blueprint_statements", **entry)
    await _ago("blueprint_applications", "created_at", application, OLD)
    return application if ended is None else await _ago("blueprint_applications", "completed_at", application, ended)


async def test_applications_go_with_their_logs_when_they_ended_long_ago_and_open_ones_never() -> None:
    team = await _team()
    about = (await _blueprint(team), await _database(team))
    kept = {await _application(*about, ended=YOUNG), await _application(*about, ended=None)}
    await _application(*about, ended=OLD, statements=3)
    await _application(*about, ended=OLD, statements=0)
    await _sweep_all()
    assert await _ids("blueprint_applications") == kept
    logs = await fetch("SELECT application_id FROM blueprint_statements")
    assert {row["application_id"] for row in logs} == kept


async def test_no_application_goes_before_its_log() -> None:
    team = await _team()
    old = await _application(await _blueprint(team), await _database(team), ended=OLD, statements=5)
    retention = Retention(history=KEPT, questions=KEPT, operations=KEPT)
    applications = "old applications of blueprints"
    assert (await service.sweep(applications, retention)).removed == 0
    assert (await service.sweep("logs of old applications", retention, batch=2)).removed == 5
    assert await _ids("blueprint_applications") == {old}
    assert (await service.sweep(applications, retention)).removed == 1


async def test_a_deleted_blueprint_keeps_its_sql_until_its_last_application_goes() -> None:
    team, sql = await _team(), "SELECT sql_content AS sql FROM blueprint_versions WHERE blueprint_id = $1"
    database, blueprint, present = await _database(team), await _blueprint(team), await _blueprint(team)
    await fetch("UPDATE blueprints SET deleted_at = now() WHERE id = $1", blueprint)
    last = await _application(blueprint, database, ended=YOUNG)
    for one in (blueprint, present):
        await _application(one, database, ended=OLD)
    await _sweep_all()
    assert [row["sql"] for row in await fetch(sql, blueprint)] == ["SELECT 1"]
    await _ago("blueprint_applications", "completed_at", last, OLD)
    await _sweep_all()
    assert [row["sql"] for row in await fetch(sql, blueprint)] == [""]
    assert [row["sql"] for row in await fetch(sql, present)] == ["SELECT 1"]
