"""What each role may do in a team, over every operation of the API."""

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest_asyncio

from app.auth.roles import Role, allows, roles_that_may
from app.auth.scopes import Reach, Scope
from app.auth.users import create_user
from app.store.session import fetch
from app.web.operation import OPT, Operation
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.copies import Copies
from tests.support.in_process import LoneApi, lone_api
from tests.support.routes import api_handlers
from tests.support.together import together

MEMBERS = (Role.MEMBER, Role.ADMIN, Role.OWNER)
ADMINS = (Role.ADMIN, Role.OWNER)
OF_ADMINS = {"deleteDatabase", "deleteBackup", "listAuditEvents"}
OPERATIONS: list[tuple[str, str, str, Operation]] = sorted(
    (
        (str(method), path.removeprefix("/api/v1"), str(handler.operation_id), handler.opt[OPT])
        for path, handler in api_handlers()
        for method in sorted(handler.http_methods)
        if OPT in handler.opt and handler.opt[OPT].reach not in (Reach.PERSON, Reach.OPERATOR)
    ),
    key=lambda one: one[2],  # the order of routes is another one in each process
)


@pytest_asyncio.fixture(scope="module")
async def roles(copies: Copies) -> AsyncIterator[LoneApi]:
    async with copies.lent() as dsn, lone_api(dsn) as api:
        await api.add_host()
        yield api


@pytest_asyncio.fixture(scope="module")
async def viewer(roles: LoneApi) -> Caller:
    caller = await roles.caller()
    await set_role(caller, Role.VIEWER)
    return caller


async def set_role(caller: Caller, role: Role, team_id: int | None = None) -> None:
    await fetch(
        "INSERT INTO memberships (user_id, team_id, role) VALUES ($1, $2, $3)"
        " ON CONFLICT (user_id, team_id) DO UPDATE SET role = $3",
        caller.user_id,
        team_id or caller.team_id,
        role,
    )


def test_roles_follow_from_scopes() -> None:
    for scope in Scope:
        least = [role for role in Role if allows(role, scope)]
        if scope in (Scope.TEAMS_WRITE, Scope.AUDIT_READ):
            assert least == list(ADMINS)
        else:
            assert least == list(Role if scope.value.endswith(":read") else MEMBERS)
    assert roles_that_may([]) == set(Role)
    assert roles_that_may([Scope.DATABASES_READ, Scope.QUERIES_WRITE]) == set(MEMBERS)
    assert roles_that_may([Scope.DATABASES_WRITE], Role.ADMIN) == set(ADMINS)


@together(("method", "path", "name", "declared"), OPERATIONS, ids=[one[2] for one in OPERATIONS])
async def test_a_viewer_changes_nothing(viewer: Caller, method: str, path: str, name: str, declared: Operation) -> None:
    path = path.format(
        uuid=uuid4(), id=viewer.team_id, delivery_id=1, name="one", user_id=1, invitation_id=1, version=1
    )
    answer = await viewer.request(method, path, key=str(uuid4()), content="{")
    reads = method == "GET" and all(scope.value.endswith(":read") for scope in declared.scopes)
    if name not in OF_ADMINS and (reads or name == "validateBlueprint"):
        assert "insufficient_role" not in answer.text
    elif declared.role is not Role.VIEWER:
        details = error_of(answer, 403, "insufficient_role")["details"]
        assert (details["role"], details["team_id"]) == ("viewer", viewer.team_id)
        assert "viewer" not in details["required"]
        assert details["required"][-1] == "owner"


@together(("method", "path", "name", "declared"), OPERATIONS, ids=[one[2] for one in OPERATIONS])
def test_members_do_all_but_destroy(method: str, path: str, name: str, declared: Operation) -> None:
    may = roles_that_may(declared.scopes, declared.role)
    if name in OF_ADMINS:
        assert may == set(ADMINS)
    elif not path.startswith("/teams") and method != "GET":
        assert may >= set(MEMBERS)


async def test_a_viewer_sees_no_password(roles: LoneApi) -> None:
    caller = await roles.caller()
    made = data_of(await caller.create("seen"), 202)
    assert data_of(await caller.get(f"/databases/{made['uuid']}"))["db_password"]
    await set_role(caller, Role.VIEWER)
    seen = data_of(await caller.get(f"/databases/{made['uuid']}"))
    assert "db_password" not in seen
    assert made["db_password"] not in json.dumps(seen)


async def test_the_role_is_that_of_the_things_team(roles: LoneApi) -> None:
    caller, other = await roles.caller(), await roles.caller()
    await set_role(caller, Role.VIEWER, other.team_id)
    third = await roles.caller()
    theirs = data_of(await other.create("theirs"), 202)["uuid"]
    mine = data_of(await caller.create("mine"), 202)["uuid"]
    strange = data_of(await third.create("strange"), 202)["uuid"]
    body_of(await caller.patch(f"/databases/{mine}", {"name": "renamed"}))
    details = error_of(await caller.patch(f"/databases/{theirs}", {"name": "renamed"}), 403, "insufficient_role")
    assert details["details"] == {
        "role": "viewer",
        "required": ["member", "admin", "owner"],
        "team_id": other.team_id,
    }
    error_of(await caller.patch(f"/databases/{strange}", {"name": "renamed"}), 404, "not_found")
    error_of(await caller.create("a", team_id=other.team_id), 403, "insufficient_role")
    asked = {"database_uuid": theirs, "query": "How many?"}
    error_of(await caller.post("/query_executions", asked), 403, "insufficient_role")
    error_of(await caller.post("/query_executions", {**asked, "database_uuid": strange}), 404, "not_found")
    assert {one["uuid"] for one in data_of(await caller.get("/databases"))} == {mine, theirs}
    endpoint = data_of(await other.post("/webhook_endpoints", {"url": "https://example.com/"}), 201)["id"]
    error_of(await caller.delete(f"/webhook_endpoints/{endpoint}"), 403, "insufficient_role")
    # Also where the role suffices in no team. What belongs to none of theirs is told of the greatest role.
    await set_role(caller, Role.MEMBER)
    for uuid, role, team in (
        (theirs, "viewer", other.team_id),
        (mine, "member", caller.team_id),
        (strange, "member", caller.team_id),
    ):
        told = error_of(await caller.delete(f"/databases/{uuid}"), 403, "insufficient_role")["details"]
        assert told == {"role": role, "required": ["admin", "owner"], "team_id": team}


async def test_nothing_is_made_in_another_team_than_the_primary(roles: LoneApi) -> None:
    other, caller = await roles.caller(), await roles.caller()
    await set_role(caller, Role.VIEWER)
    await set_role(caller, Role.MEMBER, other.team_id)
    for path, body in (
        ("/databases", {"name": "a"}),
        ("/webhook_endpoints", {"url": "https://example.com/"}),
        ("/blueprints", {"name": "a", "sql_content": "SELECT 1"}),
    ):
        details = error_of(await caller.post(path, body), 403, "insufficient_role")["details"]
        assert (details["role"], details["team_id"]) == ("viewer", caller.team_id)
    assert data_of(await caller.create("a", team_id=other.team_id), 202)["team_id"] == other.team_id


async def test_members_delete_no_databases_by_and_by_either(roles: LoneApi) -> None:
    caller = await roles.caller()
    uuid = data_of(await caller.create("kept", expires_at="2031-01-01T00:00:00Z"), 202)["uuid"]
    await set_role(caller, Role.MEMBER)
    error_of(await caller.delete(f"/databases/{uuid}"), 403, "insufficient_role")
    sooner: dict[str, Any] = {"expires_at": "2030-01-01T00:00:00Z"}
    error_of(await caller.patch(f"/databases/{uuid}", sooner), 403, "insufficient_role")
    for later in ("2031-06-01T00:00:00Z", None):
        body_of(await caller.patch(f"/databases/{uuid}", {"expires_at": later}))
    error_of(await caller.patch(f"/databases/{uuid}", sooner), 403, "insufficient_role")
    await set_role(caller, Role.ADMIN)
    body_of(await caller.patch(f"/databases/{uuid}", sooner))


async def test_an_operators_users_have_roles(roles: LoneApi) -> None:
    name = uuid4().hex
    given: list[Any] = []
    for asked in ("viewer", None, "admin"):
        user = await create_user(email=f"{uuid4().hex}@example.com", name="One", team=name, role=asked)
        given += await fetch("SELECT role FROM memberships WHERE user_id = $1", user.user_id)
    assert [row["role"] for row in given] == ["owner", "member", "admin"], "a team has an owner from the first on"
