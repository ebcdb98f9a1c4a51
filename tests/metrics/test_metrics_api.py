"""`GET /databases/{uuid}/metrics` and `GET /teams/{id}/prometheus`, without servers."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.core.secrets import new_key_setting
from app.engines.base import Counters
from app.store.session import fetch
from app.usage.metrics import prometheus, recording, rollups
from app.usage.metrics.differences import Look
from app.usage.metrics.names import MetricName
from app.usage.metrics.recording import Taken
from tests.cli.command import Headwater
from tests.support.answers import data_of, error_of, field_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi, lone_api
from tests.support.plans import Noted
from tests.support.store import execute_at

MINUTE = timedelta(minutes=1)


@pytest.fixture
async def api(control_dsn: str) -> AsyncIterator[LoneApi]:
    async with lone_api(control_dsn) as made:
        await made.add_host()
        now = datetime.now(UTC)
        await rollups.prepare(now - timedelta(days=1))
        await rollups.prepare(now)
        yield made


@pytest.fixture
async def caller(api: LoneApi) -> Caller:
    return await api.caller()


async def made(caller: Caller, name: str = "db") -> dict[str, Any]:
    found: dict[str, Any] = (await caller.create(name)).json()["data"]
    await fetch("UPDATE databases SET status = 'active' WHERE uuid = $1", UUID(found["uuid"]))
    return found


async def sample(database: dict[str, Any], at: datetime, count: int | None, **gauges: Any) -> None:
    """Counters of that many, and their halves."""
    (row,) = await fetch("SELECT id FROM databases WHERE uuid = $1", UUID(database["uuid"]))
    half = None if count is None else count // 2
    counters = Counters(began="a", transactions=count, cache_hits=count, cache_reads=half)
    known = {"connections": 2, "storage_bytes": 1000} | gauges
    one = Taken(database_id=row["id"], look=Look(place="1 t", counters=counters), **known)
    await recording.record([one], at, longest=4 * MINUTE)


async def metrics(caller: Caller, database: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    found: dict[str, Any] = data_of(await caller.get(f"/databases/{database['uuid']}/metrics", params=parameters))
    return found


async def test_what_was_sampled(caller: Caller) -> None:
    database = await made(caller)
    begin = datetime.now(UTC).replace(second=0, microsecond=0) - 10 * MINUTE
    for minute, count in enumerate((100, 130, 160)):
        await sample(database, begin + minute * MINUTE, count, connections=minute)
    found = await metrics(caller, database, **{"from": begin.isoformat(), "step": 60})
    assert [(one["name"], one["unit"]) for one in found["series"]] == [(name, name.unit) for name in MetricName]
    points = {one["name"]: [value for _, value in one["points"]] for one in found["series"]}
    assert points == {
        "storage_bytes": [1000, 1000, 1000],
        "connections": [0, 1, 2],
        "transactions": [30, 30],
        "rows_read": [],
        "rows_written": [],
        "cache_hit_ratio": [pytest.approx(2 / 3)] * 2,
    }
    times = [datetime.fromisoformat(at) for at, _ in found["series"][2]["points"]]
    assert times == [begin + MINUTE, begin + 2 * MINUTE]
    assert (found["step"], found["sampled_every"], found["uncounted"]) == (60, 60, ["rows_read", "rows_written"])
    assert 480 <= found["stale_seconds"] <= 600
    (gap,) = found["gaps"]
    assert datetime.fromisoformat(gap[0]) == begin + 2 * MINUTE, "the newest sample says nothing of what came after it"


async def test_the_command_shows_the_same(api: LoneApi, caller: Caller) -> None:
    database = await made(caller)
    begin = datetime.now(UTC).replace(second=0, microsecond=0) - 10 * MINUTE
    for minute, count in enumerate((100, 130, None)):
        await sample(database, begin + minute * MINUTE, count, connections=minute)
    headwater = Headwater({"CONTROL_DSN": api.control_dsn, "SECRET_KEYS": new_key_setting()})
    asked = ("databases", "metrics", database["uuid"], "--from", begin.isoformat(), "--step", "60")
    lines = await headwater.json(*asked)
    assert [(line["connections"], line["transactions"]) for line in lines] == [(2, None), (1, 30), (0, None)]
    assert [datetime.fromisoformat(line["at"]) for line in lines] == [begin + minute * MINUTE for minute in (2, 1, 0)]
    (line, *_) = await headwater.json(*asked, "--name", "storage_bytes")
    assert (line["storage_bytes"], line["connections"]) == (1000, None)
    assert "3 steps; of 60 seconds each" in await headwater.text(*asked)
    assert "Expected a time before to" in await headwater.refusal(*asked, "--to", (begin - MINUTE).isoformat())


async def test_what_was_never_sampled_says_so(caller: Caller) -> None:
    found = await metrics(caller, await made(caller))
    assert (found["stale_seconds"], found["uncounted"], found["step"]) == (None, [], 300)
    assert all(one["points"] == [] for one in found["series"])
    ((since, until),) = found["gaps"]
    assert datetime.fromisoformat(until) - datetime.fromisoformat(since) >= timedelta(days=1)


async def test_only_what_is_asked_for(caller: Caller) -> None:
    database = await made(caller)
    found = await metrics(caller, database, names="rows_read,transactions,rows_read")
    assert [one["name"] for one in found["series"]] == ["rows_read", "transactions"]


def _ago(**span: float) -> str:
    return (datetime.now(UTC) - timedelta(**span)).isoformat()


async def test_what_cannot_be_asked_for(caller: Caller) -> None:
    begin = _ago(hours=1)
    cases: list[tuple[str, dict[str, Any]]] = [
        *(
            ("names", {"names": names})
            for names in ("speed", "transactions,speed", "transactions," * 500, "", "Rows_Read")
        ),
        *(("from", {"from": at}) for at in ("yesterday", "2026-11-20T08:00:00", "2026-11-20", "0001-01-01T00:00:00Z")),
        *(("to", {"to": at}) for at in ("1795370749", "", "9999-12-31T23:59:59Z")),
        *(("from", {"from": begin, "to": end}) for end in (begin, _ago(hours=2))),
        *(("step", {"step": step}) for step in ("61", "null", "-60", "minute")),
        ("start", {"start": "1"}),
    ]
    for field, parameters in cases:
        assert field_of(await caller.get(f"/databases/{uuid4()}/metrics", params=parameters)) == field, parameters


async def test_what_is_wrong_names_what_there_is(caller: Caller) -> None:
    database = await made(caller)
    path = f"/databases/{database['uuid']}/metrics"

    async def message(**parameters: Any) -> str:
        answer = await caller.get(path, params=parameters)
        return str(error_of(answer, 422, "invalid_field")["message"])

    assert "cache_hit_ratio" in await message(names="speed")
    assert "60, 300, 900" in await message(step=61)
    assert "try 300, 900" in await message(step=60, **{"from": _ago(days=3)}), "minutes are kept for a day"
    assert "try 3600" in await message(step=300, **{"from": _ago(days=20)})
    assert "60 days" in await message(**{"from": _ago(days=61)})
    many = await message(step=60, **{"from": _ago(hours=1), "to": _ago(days=-9)})
    assert "too many" in many
    for step, days in ((60, 1), (300, 7), (3600, 60)):
        found = await metrics(caller, database, step=step, **{"from": _ago(days=days)})
        assert found["step"] == step


async def test_others_databases_and_teams_are_not_there(api: LoneApi, caller: Caller) -> None:
    database, stranger = await made(caller), await api.caller()
    (team,) = await fetch("SELECT team_id FROM databases")
    error_of(await stranger.get(f"/databases/{database['uuid']}/metrics"), 404, "not_found")
    error_of(await stranger.get(f"/teams/{team['team_id']}/prometheus"), 404, "not_found")
    for no_team in ("0", "x", "-1", "99999999", "9" * 30):
        error_of(await caller.get(f"/teams/{no_team}/prometheus"), 404, "not_found")
    lesser = await api.caller(scopes=("webhooks:read",))
    error_of(await lesser.get(f"/databases/{database['uuid']}/metrics"), 403, "insufficient_scope")
    error_of(await lesser.get(f"/teams/{team['team_id']}/prometheus"), 403, "insufficient_scope")
    await fetch("UPDATE databases SET status = 'deleted'")
    error_of(await caller.get(f"/databases/{database['uuid']}/metrics"), 404, "not_found")


async def _page(caller: Caller) -> tuple[dict[str, dict[str, float]], str]:
    """The values by the metric's and the database's name, and the text."""
    (team,) = await fetch("SELECT DISTINCT team_id FROM databases")
    answer = await caller.get(f"/teams/{team['team_id']}/prometheus")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(answer.text):
        for one in family.samples:
            found.setdefault(one.name, {})[one.labels.get("database", "")] = one.value
    return found, answer.text


async def test_a_team_scrapes_its_own(caller: Caller) -> None:
    fresh, stale, never = [await made(caller, name) for name in ("fresh", "stale", "never")]
    now = datetime.now(UTC)
    for at, count in ((now - 2 * MINUTE, 50), (now - MINUTE, 90)):
        await sample(fresh, at, count)
        await sample(stale, at - timedelta(hours=1), count)
    found, text = await _page(caller)
    assert found["headwater_database_transactions_total"] == {"fresh": 40}
    assert found["headwater_database_cache_reads_total"] == {"fresh": 20}
    assert found["headwater_database_connections"] == {"fresh": 2}
    assert found["headwater_database_storage_bytes"] == {"fresh": 1000}
    assert "headwater_database_rows_written_total" not in found, "it isn't counted"
    assert set(found["headwater_database_sampled_timestamp_seconds"]) == {"fresh", "stale"}
    assert found["headwater_databases_left_out"] == {"": 0}
    assert f'uuid="{fresh["uuid"]}"' in text
    assert never["uuid"] not in text


async def test_only_the_readings_of_the_page_are_read(
    api: LoneApi, control_admin_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await api.caller()
    await made(caller, "oldest")
    await fetch(
        "INSERT INTO databases (uuid, team_id, name, engine, region, plan, status, host_id, engine_name, connections)"
        " SELECT gen_random_uuid(), team_id, 'db', engine, region, plan, status, host_id, 't', connections"
        " FROM databases, generate_series(1, 20000)"
    )
    await fetch(
        "INSERT INTO metric_readings (database_id, first_at, read_at, place, began)"
        " SELECT id, now(), now(), '', '' FROM databases"
    )
    await execute_at(control_admin_dsn, "VACUUM ANALYZE databases", "VACUUM ANALYZE metric_readings")
    noted = Noted()
    monkeypatch.setattr(prometheus, "fetch_all", noted)
    monkeypatch.setattr(prometheus, "MOST_DATABASES", 20)
    page = await prometheus.newest(caller.team_id, None)
    assert [one.name for one in page] == ["oldest"] + ["db"] * 19
    assert {one.databases for one in page} == {20_001}
    connection = await asyncpg.connect(api.control_dsn)
    try:
        await connection.execute("SET plan_cache_mode = force_custom_plan")
        assert await noted.rows_read(connection, "metric_readings") == [20]
    finally:
        await connection.close()


async def test_names_cannot_break_out_of_their_labels(caller: Caller) -> None:
    database = await made(caller)
    name = 'a"} 1\nheadwater_database_connections{database="x\\'
    await fetch("UPDATE databases SET name = $1", name)
    await sample(database, datetime.now(UTC), 1)
    found, _ = await _page(caller)
    assert found["headwater_database_connections"] == {name: 2}


async def test_a_key_for_some_databases_sees_those(caller: Caller) -> None:
    seen, hidden = await made(caller, "seen"), await made(caller, "hidden")
    for database in (seen, hidden):
        await sample(database, datetime.now(UTC), 1)
    await fetch("UPDATE api_keys SET databases = $1::uuid[]", [UUID(seen["uuid"])])
    found, _ = await _page(caller)
    assert set(found["headwater_database_connections"]) == {"seen"}
    error_of(await caller.get(f"/databases/{hidden['uuid']}/metrics"), 404, "not_found")
    await metrics(caller, seen)
