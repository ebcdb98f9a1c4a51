"""Bodies are read strictly, and a refusal names the field. Interface specification, section 7."""

from typing import Any

import pytest

from app.store.session import fetch
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.client import Caller
from tests.support.routes import describe
from tests.support.together import together

CREATE = [
    ({"name": None}, "name"),
    ({"name": 1}, "name"),
    ({"name": ""}, "name"),
    ({"name": "Upper"}, "name"),
    ({"name": "-dash"}, "name"),
    ({"name": "a_b"}, "name"),
    ({"name": "a b"}, "name"),
    ({"name": "a\n"}, "name"),
    ({"name": "é"}, "name"),
    ({"name": "a" * 64}, "name"),
    ({"name": "a", "db_type": None}, "db_type"),
    ({"name": "a", "db_type": "sqlite"}, "db_type"),
    ({"name": "a", "db_type": "oracle"}, "db_type"),
    ({"name": "a", "region": None}, "region"),
    ({"name": "a", "region": 1}, "region"),
    ({"name": "a", "region": "nowhere-1"}, "region"),
    ({"name": "a", "region": ""}, "region"),
    ({"name": "a", "region": "a\x00"}, "region"),
    ({"name": "a", "plan": None}, "plan"),
    ({"name": "a", "plan": "gold"}, "plan"),
    ({"name": "a", "team_id": None}, "team_id"),
    ({"name": "a", "team_id": 0}, "team_id"),
    ({"name": "a", "team_id": "1"}, "team_id"),
    ({"name": "a", "team_id": 1.5}, "team_id"),
    ({"name": "a", "team_id": True}, "team_id"),
    ({"name": "a", "team_id": 2**63}, "team_id"),
    ({"name": "a", "storage_hard_limit_gb": "1"}, "storage_hard_limit_gb"),
    ({"name": "a", "storage_hard_limit_gb": 0}, "storage_hard_limit_gb"),
    ({"name": "a", "storage_hard_limit_gb": -1}, "storage_hard_limit_gb"),
    ({"name": "a", "connection_hard_limit": 0}, "connection_hard_limit"),
    ({"name": "a", "connection_hard_limit": 2.5}, "connection_hard_limit"),
    ({"name": "a", "connection_hard_limit": 2**40}, "connection_hard_limit"),
    ({"name": "a", "warning_threshold_pct": 0}, "warning_threshold_pct"),
    ({"name": "a", "warning_threshold_pct": 101}, "warning_threshold_pct"),
    ({"name": "a", "warning_threshold_pct": "80"}, "warning_threshold_pct"),
    ({"name": "a", "colour": "red"}, "colour"),
    ({"name": "a", "Name": "b"}, "Name"),
    ({"name": "a", "blueprint_variables": {"x": {"y": ["z", "\x00"]}}}, "blueprint_variables.x.y[1]"),
    ({"name": "a", "blueprint_variables": {"x\x00": 1}}, "blueprint_variables.x\x00"),
    (None, "body"),
    ([], "body"),
    ("name", "body"),
]


@together(("body", "field"), CREATE, ids=[str(body)[:50] for body, _ in CREATE])
async def test_a_create_that_cannot_be(asking: Caller, body: Any, field: str) -> None:
    before = await fetch("SELECT id FROM databases")
    assert field_of(await asking.post("/databases", body)) == field
    assert await fetch("SELECT id FROM databases") == before


async def test_a_create_without_a_name(asking: Caller) -> None:
    assert field_of(await asking.post("/databases", {}), "missing_required_field") == "name"


@together("name", ["a", "0", "a-", "a--b", "9-lives", "a" * 63])
async def test_names_that_fit_the_pattern(asking: Caller, name: str) -> None:
    assert data_of(await asking.create(name), 202)["name"] == name


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/x-www-form-urlencoded", None])
async def test_bodies_are_json_whatever_their_type_says(asking: Caller, kind: str | None) -> None:
    headers = {"Content-Type": kind} if kind else {}
    answer = await asking.request("POST", "/databases", key=f"of {kind}", content=b'{"name": "a"}', headers=headers)
    assert data_of(answer, 202)["name"] == "a"


@together(
    ("path", "body", "field", "code"),
    [
        ("", {}, "name", "missing_required_field"),
        ("", {"name": None}, "name", "invalid_field"),
        ("", {"name": "Upper"}, "name", "invalid_field"),
        ("", {"name": "a", "plan": "pro"}, "plan", "invalid_field"),
        ("", [], "body", "invalid_field"),
        ("/quotas", {"connection_hard_limit": 0}, "connection_hard_limit", "invalid_field"),
        ("/quotas", {"storage_hard_limit_gb": "big"}, "storage_hard_limit_gb", "invalid_field"),
        ("/quotas", {"warning_threshold_pct": 101}, "warning_threshold_pct", "invalid_field"),
        ("/quotas", {"name": "a"}, "name", "invalid_field"),
        ("/quotas", None, "body", "invalid_field"),
    ],
)
async def test_a_change_that_cannot_be(asking: Caller, path: str, body: Any, field: str, code: str) -> None:
    made = data_of(await asking.create(), 202)
    assert field_of(await asking.patch(f"/databases/{made['uuid']}{path}", body), code) == field
    now = data_of(await asking.get(f"/databases/{made['uuid']}"))
    assert (now["name"], now["quotas"]) == (made["name"], made["quotas"])


NUL = {
    "/blueprints": {"name": "a", "sql_content": "SELECT 1", "variables": {"x": {"type": "string", "pattern": "\x00"}}},
    "/query_executions": {"database_uuid": "00000000-0000-4000-8000-000000000000", "query": "a\x00"},
}


@pytest.mark.parametrize(("path", "field"), [("/blueprints", "variables.x.pattern"), ("/query_executions", "query")])
async def test_a_nul_character_has_no_place(asking: Caller, path: str, field: str) -> None:
    assert field_of(await asking.post(path, NUL[path])) == field


async def test_a_backslash_before_u0000_is_no_nul_character(asking: Caller) -> None:
    body = {"name": "a", "sql_content": r"SELECT '\u0000'"}
    assert data_of(await asking.post("/blueprints", body), 201)["size_bytes"] == len(body["sql_content"])


LONG = "\U000e0001" * 50_000
"""Python shows each of these characters as ten."""


@together(
    ("path", "body", "code"),
    [
        ("/api_keys", {"name": "a", "permissions": [LONG]}, "invalid_field"),
        ("/webhook_endpoints", {"url": "https://example.com/", "events": [LONG]}, "invalid_field"),
        ("/blueprints", {"name": "a", "sql_content": "SELECT 1", "variables": {LONG[:12_000]: {}}}, "invalid_field"),
        ("/blueprints", {"name": "a", "sql_content": f"SELECT {{{{{'a' * 50_000}}}}}"}, "blueprint_invalid"),
    ],
    ids=["a scope", "an event", "a variable", "a placeholder"],
)
async def test_a_refusal_repeats_only_the_beginning(asking: Caller, path: str, body: Any, code: str) -> None:
    """It may be stored for the key of its request: else a client could fill our own database with it."""
    answer = await asking.post(path, body)
    error_of(answer, 422, code)
    assert len(answer.content) < 20_000


async def test_patterns_are_shown_as_the_description_has_them(asking: Caller) -> None:
    answer = await asking.post("/blueprints", {"name": "a\tb", "sql_content": "SELECT 1"})
    described = describe()["components"]["schemas"]["CreateBlueprint"]["properties"]["name"]["pattern"]
    assert f"'{described}'" in error_of(answer, 422, "invalid_field")["message"]


@pytest.mark.parametrize("depth", [300, 900, 100_000])
async def test_deep_nesting_is_refused(asking: Caller, depth: int) -> None:
    body = b'{"name": ' + b"[" * depth + b"]" * depth + b"}"
    answer = await asking.request("POST", "/databases", key="k", content=body)
    assert answer.status_code in (400, 422)
    assert body_of(answer, answer.status_code)["error"]
