"""What the rules have refused stays refused for its key, also when the cause is gone. Interface specification, section
4.13; decision 4."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.core.errors import AppError
from app.core.ids import new_uuid
from app.credentials import users
from app.credentials.users import NewDatabaseUser
from app.engines.base import Access
from app.store.session import fetch, fetch_scalar
from tests.api.test_idempotency import same_but_marked
from tests.support.answers import body_of, data_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi, lone_api
from tests.support.moves import make_active


@dataclass(frozen=True)
class Refused:
    """A request that is refused until `cause_goes`, a statement with its arguments, has run."""

    method: str
    path: str
    body: Any
    status: int
    code: str
    cause_goes: tuple[Any, ...]

    async def sent(self, caller: Caller, key: str) -> httpx.Response:
        content = None if self.body is None else json.dumps(self.body)
        return await caller.request(self.method, self.path, key=key, content=content)


async def _active(caller: Caller) -> str:
    uuid: str = data_of(await caller.create(), 202)["uuid"]
    await make_active(uuid)
    return uuid


async def _applied_while_paused(_: LoneApi, caller: Caller) -> Refused:
    body = {"name": "b", "sql_content": "CREATE TABLE a (id integer)"}
    blueprint = data_of(await caller.post("/blueprints", body), 201)["uuid"]
    uuid = await _active(caller)
    await fetch("UPDATE databases SET status = 'paused', paused_reason = 'team' WHERE uuid = $1", UUID(uuid))
    return Refused(
        "POST",
        f"/databases/{uuid}/blueprint_applications",
        {"blueprint_uuid": blueprint, "wait": False},
        422,
        "database_not_active",
        ("UPDATE databases SET status = 'active', paused_reason = NULL WHERE uuid = $1", UUID(uuid)),
    )


async def _paused_by_an_operator(_: LoneApi, caller: Caller) -> Refused:
    uuid = await _active(caller)
    await fetch("UPDATE databases SET status = 'paused', paused_reason = 'operator' WHERE uuid = $1", UUID(uuid))
    return Refused(
        "POST",
        f"/databases/{uuid}/pauses",
        None,
        409,
        "paused_otherwise",
        ("UPDATE databases SET status = 'active', paused_reason = NULL WHERE uuid = $1", UUID(uuid)),
    )


async def _a_name_that_is_taken(_: LoneApi, caller: Caller) -> Refused:
    uuid = await _active(caller)
    database = await fetch_scalar(int, "SELECT id FROM databases WHERE uuid = $1", UUID(uuid))
    await users.insert(
        NewDatabaseUser(
            uuid=new_uuid(),
            database_id=database,
            name="app",
            login_name="app",
            access=Access.READ_ONLY,
            connection_limit=1,
            password_sealed=b"",
            expires_at=None,
        )
    )
    return Refused(
        "POST",
        f"/databases/{uuid}/users",
        {"name": "app", "access": "read_only"},
        409,
        "user_exists",
        ("DELETE FROM database_users WHERE database_id = $1", database),
    )


async def _the_last_owner(api: LoneApi, caller: Caller) -> Refused:
    other = await api.caller()
    joins = "INSERT INTO memberships (user_id, team_id, role) VALUES ($1, $2, 'owner')"
    return Refused(
        "DELETE",
        f"/teams/{caller.team_id}/members/{caller.user_id}",
        None,
        409,
        "last_owner",
        (joins, other.user_id, caller.team_id),
    )


async def _a_team_with_a_database(_: LoneApi, caller: Caller) -> Refused:
    await _active(caller)
    team = caller.team_id
    goes = "UPDATE databases SET status = 'deleted', destroy_at = now() WHERE team_id = $1"
    return Refused("DELETE", f"/teams/{team}", None, 409, "team_has_databases", (goes, team))


async def _one_endpoint_too_many(_: LoneApi, caller: Caller) -> Refused:
    body = {"url": "https://192.0.2.1.example.com/hook"}
    body_of(await caller.post("/webhook_endpoints", body), 201)
    goes = "UPDATE webhook_endpoints SET revoked_at = now() WHERE team_id = $1"
    return Refused("POST", "/webhook_endpoints", body, 422, "endpoint_limit_reached", (goes, caller.team_id))


@pytest.mark.parametrize(
    "caused",
    [
        _applied_while_paused,
        _paused_by_an_operator,
        _a_name_that_is_taken,
        _the_last_owner,
        _a_team_with_a_database,
        _one_endpoint_too_many,
    ],
    ids=lambda caused: caused.__name__.strip("_"),
)
async def test_when_the_cause_is_gone(
    control_dsn: str, caused: Callable[[LoneApi, Caller], Awaitable[Refused]]
) -> None:
    async with lone_api(control_dsn, webhook_endpoints_per_team=1, revocation_timeout_seconds=0.2) as api:
        await api.add_host()
        caller = await api.caller()
        refused = await caused(api, caller)
        original = body_of(await refused.sent(caller, "k"), refused.status)
        assert original["error"]["code"] == refused.code
        await fetch(*refused.cause_goes)
        assert same_but_marked(body_of(await refused.sent(caller, "k"), refused.status), original)
        # The same request with a new key is judged anew.
        answer = await refused.sent(caller, "l")
        assert answer.json().get("error", {}).get("code") != refused.code, answer.text


def test_what_keys_keep_no_answer_of() -> None:
    """Among what the rules say: these are named in decision 4 and in docs/api.md."""
    assert {error.code for error in AppError.__subclasses__() if error.transient} == {
        "capacity_exhausted",
        "idempotency_key_conflict",
        "idempotency_key_in_progress",
    }
