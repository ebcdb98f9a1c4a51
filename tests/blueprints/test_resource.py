"""Blueprints over the API: saved, listed, changed, deleted; and those that are everyone's."""

import asyncio
from base64 import b64encode
from typing import Any
from uuid import uuid4

from app.blueprints import service
from app.blueprints.shipped import SHIPPED, publish_shipped
from app.store.session import fetch, transaction
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.together import together

SQL = "CREATE TABLE notes (id integer PRIMARY KEY)"
OTHER_SQL = "CREATE TABLE notes (id integer PRIMARY KEY, note varchar(200))"
TABLE = {"table": {"type": "identifier", "default": "notes"}}


async def made(caller: Caller, name: str = "Notes", **fields: Any) -> Any:
    return data_of(await caller.post("/blueprints", {"name": name, "sql_content": SQL, **fields}), 201)


async def changed(caller: Caller, blueprint: Any, **fields: Any) -> Any:
    return data_of(await caller.request("PATCH", f"/blueprints/{blueprint['uuid']}", json=fields))


async def uuids(caller: Caller, **params: Any) -> tuple[list[str], bool]:
    body = body_of(await caller.get("/blueprints", params=params))
    return [item["uuid"] for item in body["data"]], body["has_more"]


async def test_a_blueprint_as_it_is_specified(lone: LoneApi) -> None:
    caller = await lone.caller()
    blueprint = await made(caller, description="Short ones.", variables=TABLE)
    assert blueprint == {
        "object": "blueprint",
        "uuid": blueprint["uuid"],
        "name": "Notes",
        "slug": "notes",
        "description": "Short ones.",
        "content_type": "sql",
        "version": 1,
        "size_bytes": len(SQL),
        "is_system_blueprint": False,
        "variables": TABLE,
        "metadata": {
            "dialects": ["postgres", "mysql"],
            "statement_count": 1,
            "extensions": [],
            "statements_left_out": 0,
        },
        "created_at": blueprint["created_at"],
        "updated_at": blueprint["updated_at"],
    }
    assert data_of(await caller.get(f"/blueprints/{blueprint['uuid']}")) == {**blueprint, "sql_content": SQL}
    assert body_of(await caller.get("/blueprints"))["data"] == [blueprint]


async def test_the_size_is_in_bytes(lone: LoneApi) -> None:
    caller = await lone.caller()
    sql = "CREATE TABLE käse (id integer)"
    assert (await made(caller, sql_content=sql))["size_bytes"] == len(sql.encode()) == len(sql) + 1


async def test_the_version_rises_with_the_sql_alone(lone: LoneApi) -> None:
    caller = await lone.caller()
    blueprint = await made(caller)
    for fields, version in (
        ({"name": "Old notes"}, 1),
        ({"description": "Short ones."}, 1),
        ({"variables": TABLE}, 1),
        ({"sql_content": SQL}, 1),
        ({}, 1),
        ({"sql_content": OTHER_SQL}, 2),
        ({"sql_content": SQL, "variables": None}, 3),
    ):
        answer = await changed(caller, blueprint, **fields)
        assert answer["version"] == version, fields
    assert (answer["name"], answer["description"], answer["variables"]) == ("Old notes", "Short ones.", None)
    assert answer["slug"] == "old-notes"
    rows = await fetch("SELECT version, sql_content FROM blueprint_versions ORDER BY version")
    assert [tuple(row) for row in rows] == [(1, SQL), (2, OTHER_SQL), (3, SQL)]
    assert (await changed(caller, blueprint, description=None))["description"] is None


async def test_changes_at_once_follow_one_another(lone: LoneApi) -> None:
    caller = await lone.caller()
    blueprint = await made(caller)
    await lone.warm_up()
    answers = await asyncio.gather(
        *(changed(caller, blueprint, sql_content=f"CREATE TABLE notes_{number} (id integer)") for number in range(4))
    )
    assert sorted(answer["version"] for answer in answers) == [2, 3, 4, 5]


async def test_slugs_are_unique_in_a_team(lone: LoneApi) -> None:
    caller, other = await lone.caller(), await lone.caller()
    names = ["Größte Notes!", "große notes", "日本", "Große Notes"]
    first = [await made(caller, name) for name in names]
    assert [one["slug"] for one in first] == ["grote-notes", "groe-notes", "blueprint", "groe-notes-2"]
    assert (await made(other, "日本"))["slug"] == "blueprint"
    assert (await changed(caller, first[3], name="große Notes"))["slug"] == "groe-notes-2"
    data_of(await caller.request("DELETE", f"/blueprints/{first[1]['uuid']}"))
    assert (await made(caller, "große notes"))["slug"] == "groe-notes"


async def test_sql_that_no_engine_takes(lone: LoneApi) -> None:
    caller = await lone.caller()
    blueprint = await made(caller)
    for sql in ("SELEC 1", "CREATE TABLE a (id integer);\nCOMMIT;", "", " \n"):
        if sql:
            answer = await caller.post("/blueprints", {"name": "a", "sql_content": sql})
            error = error_of(answer, 422, "blueprint_invalid")
            assert error["details"]["field"] == "sql_content"
            assert all("line" in told for told in error["details"]["errors"])
        refused = await caller.request("PATCH", f"/blueprints/{blueprint['uuid']}", json={"sql_content": sql})
        assert refused.status_code == 422
    assert (await uuids(caller))[0] == [blueprint["uuid"]]


@together(
    ("fields", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": " a"}, "name"),
        ({"name": "a\u0000"}, "name"),
        ({"name": None}, "name"),
        ({"name": "a" * 256}, "name"),
        ({"sql_content": ""}, "sql_content"),
        ({"sql_content": "SELECT '\u0000'"}, "sql_content"),
        ({"description": "\u0000"}, "description"),
        ({"variables": {"a": 1}}, "variables"),
        ({"variables": {"a": {"type": "color"}}}, "variables.a.type"),
        ({"variables": {"a": {"type": "string", "default": "\u0000"}}}, "variables.a.default"),
        ({"variables": {"a\u0000": {"type": "string"}}}, "variables.a\u0000"),
        ({"color": "red"}, "color"),
    ],
)
async def test_bad_fields_are_named(lone: LoneApi, fields: Any, field: str) -> None:
    caller = await lone.caller()
    answer = await caller.post("/blueprints", {"name": "Notes", "sql_content": SQL, **fields})
    assert field_of(answer).startswith(field)
    blueprint = await made(caller)
    answer = await caller.request("PATCH", f"/blueprints/{blueprint['uuid']}", json=fields)
    assert field_of(answer).startswith(field)


async def test_an_undeclared_variable(lone: LoneApi) -> None:
    caller = await lone.caller()
    body = {"name": "Notes", "sql_content": "CREATE TABLE {{table}} (id integer)"}
    error = error_of(await caller.post("/blueprints", body), 422, "blueprint_invalid")
    assert "table" in str(error["details"]["errors"])
    blueprint = data_of(await caller.post("/blueprints", {**body, "variables": TABLE}), 201)
    answer = await caller.request("PATCH", f"/blueprints/{blueprint['uuid']}", json={"variables": {}})
    error_of(answer, 422, "blueprint_invalid")


async def test_pages(lone: LoneApi) -> None:
    caller = await lone.caller()
    async with transaction():
        system = str((await service.publish("Shared", SQL, description=None, variables=None)).uuid)
    newest_first = [(await made(caller, f"n{number}"))["uuid"] for number in range(3)][::-1]
    assert await uuids(caller) == ([*newest_first, system], False)
    assert await uuids(caller, limit=2) == (newest_first[:2], True)
    await made(await lone.caller())
    data_of(await caller.request("DELETE", f"/blueprints/{newest_first[1]}"))
    assert await uuids(caller, limit=2, starting_after=newest_first[1]) == ([newest_first[2], system], False)
    assert await uuids(caller, starting_after=system) == ([], False)
    foreign = (await made(await lone.caller()))["uuid"]
    for cursor in (str(uuid4()), foreign, "x"):
        assert field_of(await caller.get("/blueprints", params={"starting_after": cursor})) == "starting_after"


async def test_another_teams_blueprint(lone: LoneApi) -> None:
    owner, stranger = await lone.caller(), await lone.caller()
    path = f"/blueprints/{(await made(owner))['uuid']}"
    for method in ("GET", "PATCH", "DELETE"):
        error_of(await stranger.request(method, path, json={"name": "mine"}), 404, "not_found")
    await fetch("INSERT INTO memberships (user_id, team_id) VALUES ($1, $2)", stranger.user_id, owner.team_id)
    assert data_of(await stranger.get(path))["name"] == "Notes"


async def test_a_deleted_one_is_gone(lone: LoneApi) -> None:
    caller = await lone.caller()
    path = f"/blueprints/{(await made(caller))['uuid']}"
    assert data_of(await caller.request("DELETE", path))["deleted"] is True
    for method in ("GET", "DELETE"):
        error_of(await caller.request(method, path), 404, "not_found")
    assert await uuids(caller) == ([], False)


async def test_system_blueprints_are_everyones_and_nobodys_to_change(lone: LoneApi) -> None:
    caller = await lone.caller()
    published = await publish_shipped()
    assert len(published) == len(SHIPPED) == 3
    for record in published:
        assert record.metadata is not None
        assert record.metadata.dialects == ["postgres", "mysql"]
        path = f"/blueprints/{record.uuid}"
        assert data_of(await caller.get(path))["is_system_blueprint"] is True
        error_of(await caller.request("PATCH", path, json={"name": "mine"}), 422, "system_blueprint")
        error_of(await caller.request("DELETE", path), 422, "system_blueprint")
    assert len((await uuids(caller))[0]) == 3
    again = await publish_shipped()
    assert [(one.uuid, one.version, one.updated_at) for one in again] == [
        (one.uuid, one.version, one.updated_at) for one in published
    ]


async def test_publishing_a_name_again(lone: LoneApi) -> None:
    async with transaction():
        first = await service.publish("Shared", SQL, description=None, variables=None)
        second = await service.publish("Shared", OTHER_SQL, description="Better.", variables=TABLE)
    assert second.uuid == first.uuid
    assert (first.version, second.version, second.description, second.variables) == (1, 2, "Better.", TABLE)


async def test_a_replay(lone: LoneApi) -> None:
    caller = await lone.caller()
    body = {"name": "Notes", "sql_content": SQL}
    first = await caller.post("/blueprints", body, key="k")
    again = await caller.post("/blueprints", body, key="k")
    assert again.json() == {**first.json(), "request_id": again.json()["request_id"], "idempotency_replay": True}
    assert len((await uuids(caller))[0]) == 1
    error_of(await caller.post("/blueprints", {**body, "name": "b"}, key="k"), 409, "idempotency_key_conflict")


async def test_scopes(lone: LoneApi) -> None:
    reader, writer = await lone.caller(scopes=("blueprints:read",)), await lone.caller(scopes=("blueprints:write",))
    error_of(await reader.post("/blueprints", {"name": "a", "sql_content": SQL}), 403, "insufficient_scope")
    blueprint = await made(writer)
    error_of(await writer.get(f"/blueprints/{blueprint['uuid']}"), 403, "insufficient_scope")
    assert (await reader.get("/blueprints")).status_code == 200
    assert (await reader.post("/blueprint_validations", {"sql_content": SQL})).status_code == 200
    for scopes in (("databases:write",), ("blueprints:read", "databases:read")):
        caller = await lone.caller(scopes=scopes)
        answer = await caller.post(f"/databases/{uuid4()}/blueprint_applications", {})
        error_of(answer, 403, "insufficient_scope")


async def test_validation_creates_nothing(lone: LoneApi) -> None:
    caller = await lone.caller()
    good = data_of(await caller.request("POST", "/blueprint_validations", json={"sql_content": SQL}))
    assert (good["valid"], good["statement_count"], good["errors"]) == (True, 1, [])
    assert good["manifest"]["dialects"] == ["postgres", "mysql"]
    bad = data_of(await caller.request("POST", "/blueprint_validations", json={"sql_content": "SELEC 1"}))
    assert bad["valid"] is False
    assert bad["errors"]
    assert field_of(await caller.request("POST", "/blueprint_validations", json={}), "missing_required_field")
    assert await uuids(caller) == ([], False)


async def test_every_version_with_its_sql(lone: LoneApi) -> None:
    caller, stranger = await lone.caller(), await lone.caller()
    blueprint = await made(caller)
    await changed(caller, blueprint, sql_content=OTHER_SQL)
    path = f"/blueprints/{blueprint['uuid']}/versions"
    versions = body_of(await caller.get(path))["data"]
    assert [(one["object"], one["version"], one["size_bytes"]) for one in versions] == [
        ("blueprint_version", 2, len(OTHER_SQL)),
        ("blueprint_version", 1, len(SQL)),
    ]
    assert not any("sql_content" in one for one in versions)
    first = body_of(await caller.get(path, params={"limit": "1"}))
    assert ([one["version"] for one in first["data"]], first["has_more"]) == ([2], True)
    rest = body_of(await caller.get(path, params={"starting_after": "2"}))
    assert ([one["version"] for one in rest["data"]], rest["has_more"]) == ([1], False)
    assert field_of(await caller.get(path, params={"starting_after": "3"})) == "starting_after"
    assert data_of(await caller.get(f"{path}/1")) == {**versions[1], "sql_content": SQL}
    for unknown in ("3", "0", "x", "9999999999"):
        error_of(await caller.get(f"{path}/{unknown}"), 404, "not_found")
    error_of(await stranger.get(path), 404, "not_found")
    error_of(await stranger.get(f"{path}/1"), 404, "not_found")
    assert body_of(await caller.get(f"/blueprints/{blueprint['uuid']}/blueprint_applications"))["data"] == []
    error_of(await stranger.get(f"/blueprints/{blueprint['uuid']}/blueprint_applications"), 404, "not_found")


async def test_sql_in_base64(lone: LoneApi) -> None:
    """What is saved, shown and judged is text."""
    caller = await lone.caller()

    def sent(script: bytes) -> dict[str, str]:
        return {"sql_content": b64encode(script).decode(), "sql_encoding": "base64"}

    script = b"CREATE TABLE a (b blob);\nINSERT INTO a VALUES (_binary '\xff\\0');"
    text = "CREATE TABLE a (b blob);\nINSERT INTO a VALUES (_binary X'ff00');"
    blueprint = data_of(await caller.post("/blueprints", {"name": "Octets", **sent(script)}), 201)
    assert blueprint["size_bytes"] == len(text)
    assert data_of(await caller.get(f"/blueprints/{blueprint['uuid']}"))["sql_content"] == text
    again = await changed(caller, blueprint, **sent(script.replace(b"\xff", b"\xfe")))
    assert again["version"] == 2
    assert data_of(await caller.post("/blueprint_validations", sent(script)))["valid"]
    assert data_of(await caller.post("/blueprint_validations", sent(SQL.encode())))["valid"]


@together(
    ("content", "said"),
    [
        ("CREATE TABLE a (b blob);", "base64"),
        ("Q1JFQVRF\n", "base64"),
        ("w7w", "base64"),
        (b64encode(b"SELECT 1;\n SELECT \xff").decode(), "line 2, column 9 (MySQL)"),
        (b64encode(b"SELECT '\x00'").decode(), "NUL"),
        (b64encode(b"SELECT '" + 600_000 * b"\xff" + b"'").decode(), "1200010 characters"),
    ],
)
async def test_base64_that_can_not_be_used(lone: LoneApi, content: str, said: str) -> None:
    caller = await lone.caller()
    body = {"sql_content": content, "sql_encoding": "base64"}
    for answer in (
        await caller.post("/blueprint_validations", body),
        await caller.post("/blueprints", {"name": "Octets", **body}),
    ):
        assert field_of(answer) == "sql_content"
        assert said in answer.json()["error"]["message"]
