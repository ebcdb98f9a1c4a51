"""`GET /databases` and `GET /deleted_databases` with filters."""

from collections.abc import AsyncIterator
from itertools import product

import pytest
import pytest_asyncio

from app.contracts.base import DatabaseStatus, Engine
from app.databases import search
from app.databases.filters import DatabaseFilters
from app.store.session import fetch
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.together import together

Query = list[tuple[str, str]]

_STATUSES = ("active", "paused")
_LABELS: tuple[list[str], ...] = (["env:production", "owner:a"], ["env:staging", "owner:a"], [])


@pytest_asyncio.fixture(scope="module")
async def owner(shared: LoneApi) -> Caller:
    """Of two databases of each kind, the kinds in turn, and of a neighbour with the same."""
    await shared.add_host(region="eu-west-1")
    one, other = await shared.caller(), await shared.caller()
    host = (await fetch("SELECT id FROM engine_hosts LIMIT 1"))[0]["id"]
    kinds = product(("orders", "invoices"), _STATUSES, Engine, ("us-east-1", "eu-west-1"), ("free", "pro"), _LABELS)
    for name, status, engine, region, plan, labels in [*kinds] * 2:
        for caller in (one, other):
            await fetch(
                "INSERT INTO databases (uuid, team_id, name, engine, region, plan, status, host_id, engine_name,"
                " connections, labels)"
                " VALUES (gen_random_uuid(), $1, $2, $3, $4, $5, $6, $7, 'x', 1, $8)",
                *(caller.team_id, f"{name}-{plan}", engine, region, plan, status, host, labels),
            )
    return one


async def listed(caller: Caller, query: Query, limit: int = 100) -> list[str]:
    """The uuids of all pages."""
    found: list[str] = []
    more = True
    while more:
        after = [("starting_after", found[-1])] if found else []
        answer = body_of(await caller.get("/databases", params=[*query, ("limit", str(limit)), *after]))
        found += [item["uuid"] for item in answer["data"]]
        more = answer["has_more"]
    return found


async def expected(caller: Caller, where: str) -> list[str]:
    rows = await fetch(
        f"SELECT uuid FROM databases WHERE team_id = $1 AND status <> 'deleted' AND {where} ORDER BY position DESC",
        caller.team_id,
    )
    return [str(row["uuid"]) for row in rows]


@together(
    ("query", "where"),
    [
        ([("status", "paused")], "status = 'paused'"),
        ([("status", "paused"), ("status", "active")], "true"),
        ([("status", "provisioning")], "false"),
        ([("db_type", "mysql")], "engine = 'mysql'"),
        ([("region", "eu-west-1")], "region = 'eu-west-1'"),
        ([("plan", "pro"), ("plan", "grow")], "plan = 'pro'"),
        ([("name", "orders")], "name LIKE 'orders%'"),
        ([("name", "orders-pro")], "name = 'orders-pro'"),
        ([("name", "rders")], "false"),
        ([("label", "env:production")], "'env:production' = any(labels)"),
        ([("label", "env:production"), ("label", "owner:a")], "labels = ARRAY['env:production', 'owner:a']"),
        ([("label", "env:production"), ("label", "env:staging")], "false"),
        ([("label", "owner:")], "false"),
        (
            [
                *(("name", "inv"), ("status", "active"), ("db_type", "postgres")),
                *(("region", "us-east-1"), ("plan", "free"), ("label", "owner:a")),
            ],
            "name = 'invoices-free' AND status = 'active' AND engine = 'postgres' AND region = 'us-east-1'"
            " AND 'owner:a' = any(labels)",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_matches_in_the_order_of_lists(owner: Caller, query: Query, where: str) -> None:
    assert await listed(owner, query) == await expected(owner, where)
    assert await listed(owner, query, limit=7) == await expected(owner, where)


@together(
    ("query", "field", "says"),
    [
        ([("status", "gone")], "status", "provisioning, active, paused"),
        ([("status", "deleted")], "status", "deleted_databases"),
        ([("status", "active,paused")], "status", "repeated"),
        ([("status", "")], "status", "provisioning, active, paused"),
        ([("db_type", "oracle")], "db_type", "postgres, mysql"),
        ([("plan", "Pro")], "plan", "free, launch, grow, pro"),
        ([("region", "mars-1")], "region", "eu-west-1, us-east-1"),
        ([("region", "\0")], "region", "no region"),
        ([("region", f"r{number}") for number in range(11)], "region", "10 times"),
        ([("name", "")], "name", "No name"),
        ([("name", "Orders")], "name", "'Orders'"),
        ([("name", "%")], "name", "'%'"),
        ([("label", "env")], "label", "key:value"),
        ([("label", "ENV:x")], "label", "'ENV:x'"),
        ([("label", "env:\0")], "label", "control character"),
        ([("label", f"k{number}:x") for number in range(6)], "label", "5 times"),
        ([("labels", "env:x")], "labels", "no query parameter"),
    ],
    ids=lambda value: repr(value) if isinstance(value, str) else "",
)
async def test_what_there_is_not(owner: Caller, query: Query, field: str, says: str) -> None:
    answer = await owner.get("/databases", params=query)
    assert field_of(answer) == field
    assert says in answer.json()["error"]["message"]


async def test_a_key_for_some_databases_sees_no_others(owner: Caller, shared: LoneApi) -> None:
    paused = await expected(owner, "status = 'paused'")
    active = await expected(owner, "status = 'active'")
    minted = body_of(
        await owner.post(
            "/api_keys", {"name": "narrow", "permissions": ["databases:read"], "databases": [paused[3], active[0]]}
        ),
        201,
    )
    narrow = Caller(shared.http, minted["api_key"], owner.user_id, owner.team_id, 0)
    assert await listed(narrow, [("status", "paused")]) == [paused[3]]
    assert await listed(narrow, [("plan", "grow")]) == []


async def test_the_cursor_of_a_neighbour(owner: Caller, shared: LoneApi) -> None:
    other = await shared.caller()
    for query in ([("status", "paused")], [("name", "orders")], [("label", "env:production")]):
        cursor = ("starting_after", (await listed(owner, query))[0])
        assert field_of(await other.get("/databases", params=[*query, cursor])) == "starting_after"


async def test_deleted_databases_are_filtered_too(lone: LoneApi) -> None:
    caller = await lone.caller()
    uuids = [data_of(await caller.create(name), 202)["uuid"] for name in ("orders", "invoices")]
    await fetch("UPDATE databases SET status = 'deleted', deleted_at = now(), destroy_at = now() + interval '1 hour'")
    for query, found in (
        ({"name": "inv"}, uuids[1:]),
        ({"plan": "pro"}, []),
        ({"db_type": "postgres", "region": "us-east-1"}, uuids[::-1]),
        ({"label": "a:b"}, []),
    ):
        answer = body_of(await caller.get("/deleted_databases", params=query))
        assert [item["uuid"] for item in answer["data"]] == found
    assert field_of(await caller.get("/deleted_databases", params={"status": "active"})) == "status"
    assert field_of(await caller.get("/deleted_databases", params={"region": "mars-1"})) == "region"


@pytest_asyncio.fixture(scope="module")
async def crowd(shared: LoneApi) -> AsyncIterator[Caller]:
    """The owner of 3,000 databases: the older half MySQL and paused, the newer half neither, and one in the middle."""
    caller = await shared.caller()
    await fetch(
        "INSERT INTO databases (uuid, team_id, name, engine, region, plan, status, host_id, engine_name, connections,"
        " labels)"
        " SELECT gen_random_uuid(), $1, 'db-' || n, CASE WHEN n <= 1500 THEN 'mysql' ELSE 'postgres' END, 'us-east-1',"
        " 'free', CASE WHEN n < 1500 THEN 'paused' ELSE 'active' END, (SELECT min(id) FROM engine_hosts), 'x', 1,"
        " CASE WHEN n % 1000 = 500 THEN ARRAY['rare:yes'] ELSE '{}' END FROM generate_series(1, 3000) AS n",
        caller.team_id,
    )
    yield caller


async def test_what_lies_far_behind_is_found(crowd: Caller) -> None:
    for query, where in (
        ([("db_type", "mysql"), ("status", "active")], "engine = 'mysql' AND status = 'active'"),
        ([("status", "paused"), ("label", "rare:yes")], "status = 'paused' AND labels <> '{}'"),
        ([("name", "db-1"), ("db_type", "postgres")], "name LIKE 'db-1%' AND engine = 'postgres'"),
        ([("name", "db-2999"), ("status", "paused")], "false"),
        ([("name", "db-12")], "name LIKE 'db-12%'"),
    ):
        assert await listed(crowd, query, limit=10) == await expected(crowd, where)


async def test_no_search_looks_at_more_than_its_share(crowd: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    exclusive = DatabaseFilters(statuses=(DatabaseStatus.PAUSED,), engines=(Engine.POSTGRES,))
    assert await search.search([crowd.team_id], exclusive, after=None, limit=25) == []
    monkeypatch.setattr(search, "STEPS", (200,))
    answer = await crowd.get("/databases", params=[("status", "paused"), ("db_type", "postgres")])
    assert "label" in error_of(answer, 422, "search_too_wide")["message"]
    assert await listed(crowd, [("status", "paused")], limit=100) == await expected(crowd, "status = 'paused'")
