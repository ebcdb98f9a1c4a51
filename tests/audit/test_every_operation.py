"""Each operation of the API that may change something leaves one event, done and refused, with its declared action."""

import json
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import httpx
import msgspec

from app.engines.dumping import DumpFormat
from app.store.session import execute, fetch
from tests.backups.support import add_backup, database_row
from tests.contract.documented import Described, Description
from tests.support.authenticator import Authenticator
from tests.support.client import OPERATOR_TOO, Caller
from tests.support.in_process import LoneApi, lone_api
from tests.support.model_server import script, sql
from tests.support.moves import make_active, make_revoked
from tests.support.people import Person, follow, link_for, sign_in
from tests.support.routes import describe
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.together import together

DESCRIPTION = Description(describe())
CHANGING = {
    name: found for name, found in DESCRIPTION.operations.items() if found.operation.get("x-audit-action") is not None
}
KNOWN = {name: found for name, found in CHANGING.items() if found.operation.get("security") != []}
"""Those whose callers are known before they are let in."""
NOWHERE: dict[str, Any] = {"uuid": "00000000-0000-4000-8000-000000000000", "name": "nobody"}
"""Path parameters that name nothing; the others are numbers."""


async def send(caller: Caller | Person, found: Described, body: Any = None, /, **parameters: Any) -> httpx.Response:
    path = found.path.removeprefix("/api/v1")
    for parameter in found.operation["parameters"]:
        if parameter["in"] == "path":
            value = parameters.get(parameter["name"], NOWHERE.get(parameter["name"], 2**40))
            path = path.replace(f"{{{parameter['name']}}}", str(value))
    content = None if body is None else json.dumps(body)
    return await caller.request(found.method, path, key=str(uuid4()), content=content)


async def left_by(answer: httpx.Response) -> list[tuple[str, str]]:
    rows = await fetch("SELECT action, outcome FROM audit_events WHERE request_id = $1", answer.headers["x-request-id"])
    return [tuple(row) for row in rows]


@together("found", KNOWN.values(), ids=KNOWN)
async def test_what_is_refused_leaves_one(asking: Caller, shared: LoneApi, found: Described) -> None:
    action = found.operation["x-audit-action"]
    narrow = await shared.caller(scopes=("webhooks:read",))
    refused = [await send(narrow, found), await send(asking, found, {"no such field": 1})]
    assert [answer.status_code // 100 for answer in refused] == [4, 4]
    for answer in refused:
        assert await left_by(answer) == [(action, "refused")], answer.text


class Walk:
    """What the operations are sent to."""

    def __init__(self, api: LoneApi, caller: Caller) -> None:
        self.api = api
        self.caller: Caller | Person = caller
        self.sent: dict[str, httpx.Response] = {}

    async def __call__(self, operation: str, body: Any = None, /, **parameters: Any) -> Any:
        """Sends the operation; what its answer has."""
        answer = await send(self.caller, CHANGING[operation], body, **parameters)
        self.sent[operation] = answer
        return answer.json().get("data")

    async def database(self) -> str:
        """An active one."""
        made = await self("createDatabase", {"name": "a"})
        await make_active(made["uuid"])
        return str(made["uuid"])


async def _databases(walk: Walk) -> None:
    uuid = await walk.database()
    await walk("renameDatabase", {"name": "b"}, uuid=uuid)
    await walk("changeQuotas", {"warning_threshold_pct": 70}, uuid=uuid)
    await walk("changeBackupPolicy", {"keep_days": 3}, uuid=uuid)
    await walk("pauseDatabase", uuid=uuid)
    await execute("UPDATE databases SET access_applied = access_revision WHERE uuid = $1", uuid)
    await walk("resumeDatabase", uuid=uuid)
    other = await walk.database()
    await walk("deleteDatabase", uuid=other)
    await make_revoked(other)
    await walk("undeleteDatabase", uuid=other)


async def _operations(walk: Walk) -> None:
    for name in ("retryOperation", "cancelOperation"):
        made = await walk("createDatabase", {"name": "a"})
        rows = await fetch(
            "SELECT o.uuid FROM operations o JOIN databases d ON d.id = o.database_id WHERE d.uuid = $1", made["uuid"]
        )
        await walk(name, uuid=rows[0]["uuid"])


async def _credentials(walk: Walk) -> None:
    uuid = await walk.database()
    await walk("createDatabaseUser", {"name": "app", "access": "read_only"}, uuid=uuid)
    await execute("UPDATE database_users SET status = 'active'")
    await walk("rotateDatabaseUser", {}, uuid=uuid, name="app")
    await walk("deleteDatabaseUser", uuid=uuid, name="app")
    await walk("rotateCredentials", {"overlap_seconds": 60}, uuid=uuid)
    await execute("UPDATE credential_rotations SET status = 'overlapping', retires_at = now() + interval '1 hour'")
    rotation = (await fetch("SELECT uuid FROM credential_rotations"))[0]["uuid"]
    await walk("completeCredentialRotation", uuid=rotation)


async def _backups(walk: Walk) -> None:
    uuid = await walk.database()
    taken = await walk("takeBackup", {}, uuid=uuid)
    await walk("deleteBackup", uuid=taken["uuid"])
    form = DumpFormat(flavour="postgres", server_version="18.1", tool="pg_dump 18.1", layout="pg_custom")
    whole = await add_backup(await database_row(uuid), format=msgspec.json.encode(form).decode(), wrapped_key=b"k")
    await walk("testBackup", uuid=whole)
    await walk("restoreDatabase", {"backup_uuid": str(whole)}, uuid=uuid)


async def _blueprints(walk: Walk) -> None:
    made = await walk("createBlueprint", {"name": "b", "sql_content": "CREATE TABLE t (id integer)"})
    await walk("applyBlueprint", {"blueprint_uuid": made["uuid"], "wait": False}, uuid=await walk.database())
    await walk("updateBlueprint", {"description": "more"}, uuid=made["uuid"])
    await walk("deleteBlueprint", uuid=made["uuid"])


async def _keys(walk: Walk) -> None:
    made = await walk("createApiKey", {"name": "k", "permissions": ["databases:read"]})
    await walk("updateApiKey", {"name": "other"}, id=made["id"])
    await walk("rotateApiKey", {"overlap_seconds": 0}, id=made["id"])
    await walk("revokeApiKey", id=made["id"])


async def _webhooks(walk: Walk) -> None:
    made = await walk("createWebhookEndpoint", {"url": "https://192.0.2.1.example.com/"})
    await walk("changeWebhookEndpoint", {"url": "https://192.0.2.2.example.com/"}, id=made["id"])
    await walk("rotateWebhookSecret", id=made["id"])
    sent = await walk("testWebhookEndpoint", id=made["id"])
    await walk("retryWebhookDelivery", id=made["id"], delivery_id=sent["id"])
    await walk("revokeWebhookEndpoint", id=made["id"])


async def _teams(walk: Walk) -> None:
    owner, other = walk.caller, await walk.api.caller()
    email = (await fetch("SELECT email FROM users WHERE id = $1", other.user_id))[0]["email"]
    # Only who is in some team of the caller's is added by an address.
    await execute(
        "INSERT INTO memberships (user_id, team_id, role) VALUES ($1, $2, 'viewer')", other.user_id, owner.team_id
    )
    team = (await walk("createTeam", {"name": "new"}))["id"]
    await walk("updateTeam", {"name": "newer"}, id=team)
    await walk("addMember", {"email": email, "role": "member"}, id=team)
    await walk("changeMember", {"role": "viewer"}, id=team, user_id=other.user_id)
    await walk("removeMember", id=team, user_id=other.user_id)
    withdrawn = await walk("createInvitation", {"role": "member"}, id=team)
    await walk("withdrawInvitation", id=team, invitation_id=withdrawn["id"])
    await walk("createInvitation", {"role": "member"}, id=team)
    token = walk.sent["createInvitation"].json()["token"]
    walk.caller = other
    await walk("acceptInvitation", {"token": token})
    walk.caller = owner
    await walk("deleteTeam", id=team)


async def _operators(walk: Walk) -> None:
    uuid = await walk.database()
    made = [(await walk("createDatabase", {"name": name}))["uuid"] for name in ("retried", "cancelled")]
    operations = await fetch(
        "SELECT o.uuid FROM operations o JOIN databases d ON d.id = o.database_id"
        " WHERE d.uuid = any($1::uuid[]) ORDER BY o.id",
        made,
    )
    walk.caller = await walk.api.caller(scopes=OPERATOR_TOO)
    await walk("pauseAnyDatabase", uuid=uuid)
    await execute("UPDATE databases SET access_applied = access_revision WHERE uuid = $1", uuid)
    await walk("resumeAnyDatabase", uuid=uuid)
    host = await walk.api.add_host()
    for name, body in (("drainHost", {}), ("undrainHost", None), ("evacuateHost", {}), ("removeHost", None)):
        await walk(name, body, id=host)
    await walk("retryAnyOperation", uuid=operations[0]["uuid"])
    await walk("cancelAnyOperation", uuid=operations[1]["uuid"])


async def _sessions(walk: Walk) -> None:
    api, asking = walk.api, await walk.api.caller()
    followed = await follow(api.http, await link_for(api.control_dsn, asking.user_id))
    walk.sent["followSignInLink"] = followed
    person = walk.caller = await sign_in(api.http, api.control_dsn, asking)
    authenticator = Authenticator(person.origin)
    options = (await walk("createPasskeyChallenge", {}))["options"]
    made = await walk("addPasskey", {"name": "Laptop", "credential": authenticator.create(options)})
    await walk("renamePasskey", {"name": "Desk"}, uuid=made["uuid"])
    asked = await person.post("/sign_in_challenges", {}, headers={"Cookie": ""})
    credential = authenticator.get(asked.json()["data"]["options"])
    walk.sent["usePasskey"] = await person.post(
        "/sign_ins/passkeys", {"credential": credential}, headers={"Cookie": ""}
    )
    await walk("removePasskey", uuid=made["uuid"])
    await walk("endSession", uuid=followed.json()["data"]["uuid"])
    await walk("endAllSessions")


WALKS: dict[str, Callable[[Walk], Awaitable[None]]] = {
    "databases": _databases,
    "operations": _operations,
    "credentials": _credentials,
    "backups": _backups,
    "blueprints": _blueprints,
    "keys": _keys,
    "webhooks": _webhooks,
    "teams": _teams,
    "operators": _operators,
    "sessions": _sessions,
}
ASKED = {"executeQuery", "executeTranslatedQuery", "runCheck"}
"""They need a database, or Temporal."""
WITH_A_PROVIDER = {"useProvider"}
"""tests/sessions/test_provider.py has one."""
WITH_A_SERVER = {"addHost"}
"""tests/api/test_operators.py has one."""


async def test_what_is_done_leaves_one(control_dsn: str) -> None:
    """Nothing carries the work out here: what an operation has committed is all that its event tells."""
    done: set[str] = set()
    hurried = {"revocation_timeout_seconds": 0.1, "limits_timeout_seconds": 0.1}
    async with lone_api(control_dsn, **hurried) as api:
        await api.add_host()
        for path in WALKS.values():
            walk = Walk(api, await api.caller())
            await path(walk)
            for name, answer in walk.sent.items():
                expected = [(CHANGING[name].operation["x-audit-action"], "succeeded")]
                assert await left_by(answer) == expected, (name, answer.text)
            done |= walk.sent.keys()
    assert done | ASKED | WITH_A_PROVIDER | WITH_A_SERVER == CHANGING.keys()


async def test_a_question_leaves_one(service: RunningService) -> None:
    caller = await service.caller()
    uuid = (await caller.created())["uuid"]
    body = {"database_uuid": uuid, "query": script(sql("SELECT 1"))}
    answer = await send(caller, CHANGING["executeQuery"], body)
    assert answer.status_code == 200, answer.text
    refused = await send(caller, CHANGING["executeQuery"], {**body, "query": script(sql("SELECT pg_sleep(1)"))})
    shown = await send(caller, CHANGING["executeQuery"], {**body, "execute": False})
    run = await send(caller, CHANGING["executeTranslatedQuery"], id=shown.json()["query_id"])
    assert run.status_code == 200, run.text
    async with store(service.control_dsn):
        assert await left_by(answer) == [("query.execute", "succeeded")]
        assert await left_by(run) == [("query.run", "succeeded")]
        assert len(await left_by(refused)) == 1
        events = await fetch(
            "SELECT subject_id FROM audit_events WHERE action = 'query.execute' AND team_id = $1", caller.team_id
        )
        assert {row["subject_id"] for row in events} == {uuid}
