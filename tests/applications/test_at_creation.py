"""A database that is created with a blueprint."""

from typing import Any
from uuid import uuid4

import pytest

from tests.applications.support import ENGINES, TWO_TABLES, ended, saved, seen, tables
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.client import Caller
from tests.support.service import RunningService

each_engine = pytest.mark.parametrize("engine", ENGINES)


async def created(caller: Caller, sql: str, *, definitions: Any = None, wait: bool = True, **fields: Any) -> Any:
    """The whole answer."""
    blueprint = await saved(caller, sql, variables=definitions)
    return await caller.create(wait=wait, blueprint_uuid=blueprint, **fields)


@each_engine
async def test_both_are_waited_for(caller: Caller, engine: str) -> None:
    definitions = {"table": {"type": "identifier"}}
    sql = "CREATE TABLE {{table}} (id integer)"
    answer = await created(caller, sql, definitions=definitions, db_type=engine, blueprint_variables={"table": "a"})
    body = body_of(answer, 201)
    application = body["blueprint_application"]
    assert application["status"] == "completed", application
    assert application["is_dry_run"] is False
    assert application["variable_values"] == {"table": "a"}
    assert body["message"] == "Database created."
    assert await tables(body["data"]) == ["a"]
    assert (await seen(caller, application))["status"] == "completed"


async def test_a_blueprint_that_fails_leaves_an_active_database(caller: Caller) -> None:
    body = body_of(await created(caller, f"{TWO_TABLES}DROP TABLE nowhere;"), 201)
    assert body["data"]["status"] == "active"
    assert body["blueprint_application"]["status"] == "failed"
    assert "nowhere" in body["blueprint_application"]["error_message"]
    assert "could not be applied" in body["message"]
    assert await tables(body["data"]) == []


async def test_without_waiting(service: RunningService, caller: Caller) -> None:
    async with service.frozen("worker"):
        body = body_of(await created(caller, TWO_TABLES, wait=False), 202)
    assert body["blueprint_application"]["status"] == "pending"
    assert (await ended(caller, body["blueprint_application"]))["status"] == "completed"
    database = data_of(await caller.get(f"/databases/{body['data']['uuid']}"))
    assert await tables(database) == ["a", "b"]


async def test_a_replay(caller: Caller) -> None:
    blueprint = await saved(caller, TWO_TABLES)
    first = body_of(await caller.create(wait=True, key="k", blueprint_uuid=blueprint), 201)
    again = body_of(await caller.create(wait=True, key="k", blueprint_uuid=blueprint), 201)
    assert again["idempotency_replay"] is True
    assert again["blueprint_application"] == first["blueprint_application"]


async def test_what_is_refused_makes_nothing(caller: Caller, service: RunningService) -> None:
    stranger = await service.caller()
    plain = await saved(caller, TWO_TABLES)
    secret = await saved(caller, "SELECT {{x}}", variables={"x": {"type": "integer", "max": 5}})
    mysql_only = await saved(caller, "CREATE TABLE a (id integer) ENGINE=InnoDB")
    foreign = await saved(stranger, TWO_TABLES)
    for fields, field in (
        ({"blueprint_uuid": str(uuid4())}, "blueprint_uuid"),
        ({"blueprint_uuid": foreign}, "blueprint_uuid"),
        ({"blueprint_uuid": "x"}, "blueprint_uuid"),
        ({"blueprint_uuid": mysql_only}, "blueprint_uuid"),
        ({"blueprint_uuid": secret}, "blueprint_variables.x"),
        ({"blueprint_uuid": secret, "blueprint_variables": {"x": 6}}, "blueprint_variables.x"),
        ({"blueprint_uuid": plain, "blueprint_variables": {"x": 6}}, "blueprint_variables.x"),
        ({"blueprint_variables": {"x": 6}}, "blueprint_variables"),
    ):
        assert field_of(await caller.create(**fields)) == field, fields
    assert data_of(await caller.get("/databases")) == []
    error_of(await caller.get("/blueprint_applications/999999"), 404, "not_found")


async def test_a_database_that_is_deleted_before(service: RunningService, caller: Caller) -> None:
    async with service.frozen("worker"):
        body = body_of(await created(caller, TWO_TABLES, wait=False), 202)
        async with service.another_api(REVOCATION_TIMEOUT_SECONDS="0.1") as (http, _):
            other = Caller(http, caller.api_key, caller.user_id, caller.team_id, caller.key_id)
            await other.delete(f"/databases/{body['data']['uuid']}")
    application = await seen(caller, body["blueprint_application"])
    assert (application["status"], application["started_at"]) == ("failed", None)
