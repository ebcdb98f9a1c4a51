"""`/operator/…`: what concerns all teams, for those who are marked as operators."""

from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pytest
import pytest_asyncio

from app.audit.sealing import seal_events
from app.auth.operators import keep_operator
from app.auth.scopes import Reach
from app.auth.users import set_operator
from app.core.errors import OperatorsOnly
from app.store.session import execute, fetch, transaction
from app.upkeep.reconcile.findings import Violation, write
from app.web.operation import OPT
from tests.api.test_api_keys import minted
from tests.servers import RunningServer
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.client import OPERATOR_TOO, Caller
from tests.support.in_process import LoneApi
from tests.support.ports import free_port
from tests.support.routes import api_handlers
from tests.support.together import together

OPERATIONS = sorted(
    (str(method), path.removeprefix("/api/v1"))
    for path, handler in api_handlers()
    for method in handler.http_methods
    if OPT in handler.opt and handler.opt[OPT].reach is Reach.OPERATOR
)


@pytest_asyncio.fixture(scope="module")
async def operator(shared: LoneApi) -> Caller:
    return await shared.caller(scopes=OPERATOR_TOO)


@together(("method", "path"), OPERATIONS)
async def test_for_operators_alone(shared: LoneApi, asking: Caller, method: str, path: str) -> None:
    """A person who is none, or no more; an operator's keys without the scope, and for less than everything."""
    path = path.format(uuid=uuid4(), id=1)
    error_of(await asking.request(method, path, key=str(uuid4())), 403, "operators_only")
    former = await shared.caller(scopes=OPERATOR_TOO)
    without = await minted(former, "databases:*")
    error_of(await without.request(method, path, key=str(uuid4())), 403, "insufficient_scope")
    narrow = await minted(former, *OPERATOR_TOO, team_id=former.team_id)
    error_of(await narrow.request(method, path, key=str(uuid4())), 403, "operators_only")
    await set_operator(former.user_id, False)
    error_of(await former.request(method, path, key=str(uuid4())), 403, "operators_only")


async def test_nobody_mints_what_only_operators_have(asking: Caller, operator: Caller) -> None:
    body = {"name": "ops", "permissions": ["operator:read"]}
    details = error_of(await asking.post("/api_keys", body), 403, "exceeds_own_key")["details"]
    assert details == {"field": "permissions"}
    assert data_of(await operator.post("/api_keys", body), 201)["permissions"] == ["operator:read"]
    await set_operator(operator.user_id, False)
    error_of(await operator.post("/api_keys", {**body, "permissions": ["operator:write"]}), 403, "exceeds_own_key")
    await set_operator(operator.user_id, True)


async def test_somebody_in_no_team(operator: Caller) -> None:
    kept = await fetch("DELETE FROM memberships WHERE user_id = $1 RETURNING team_id, role", operator.user_id)
    assert isinstance(data_of(await operator.get("/operator/hosts")), list)
    for row in kept:
        await execute(
            "INSERT INTO memberships (user_id, team_id, role) VALUES ($1, $2, $3)", operator.user_id, *row.values()
        )


async def test_hosts_with_their_room(shared: LoneApi, operator: Caller) -> None:
    room = {"capacity": 10, "connection_capacity": 50, "connection_overcommit": 2, "storage_gb": 7}
    id = await shared.add_host(**room, draining=True, extensions=["pg_trgm"])
    pages = [body_of(await operator.get("/operator/hosts", params={"limit": "1"}))]
    while pages[-1]["has_more"]:
        after = {"limit": "1", "starting_after": str(pages[-1]["data"][0]["id"])}
        pages.append(body_of(await operator.get("/operator/hosts", params=after)))
    hosts = {page["data"][0]["id"]: page["data"][0] for page in pages}
    assert list(hosts) == sorted(hosts)
    seen = {
        "object": "host",
        "db_type": "postgres",
        "databases": 0,
        **room,
        "connection_room": 100,
        "load": 0.0,
        "room": {"databases": 10, "connections": 100},
        "draining": True,
        "failure": None,
        "extensions": ["pg_trgm"],
    }
    assert hosts[id] | seen == hosts[id]
    assert "admin" not in str(hosts)
    assert field_of(await operator.get("/operator/hosts", params={"starting_after": "4711"})) == "starting_after"


async def test_a_host_from_its_registration_to_its_end(
    operator: Caller, postgres_server: RunningServer, mysql_server_if_any: RunningServer | None
) -> None:
    for server in filter(None, (postgres_server, mysql_server_if_any)):
        admin = urlsplit(server.admin_dsn)
        body = {
            "db_type": "mysql" if admin.scheme == "mysql" else "postgres",
            "region": "ap-south-1",
            "admin_host": admin.hostname,
            "admin_port": admin.port,
            "admin_user": admin.username,
            "admin_password": unquote(admin.password or ""),
            "public_host": "db.example.com",
            "capacity": 7,
        }
        wrong = await operator.post("/operator/hosts", {**body, "admin_password": "not-this-one"})
        assert field_of(wrong) == "admin_host"
        key = str(uuid4())
        answer = body_of(await operator.post("/operator/hosts", body, key=key), 201)
        host = answer["data"]
        assert (host["host"], host["port"], host["capacity"], host["tls"]) == (
            "db.example.com",
            admin.port,
            7,
            "disable",
        )
        assert isinstance(host.pop("shortcomings"), list)
        assert body_of(await operator.post("/operator/hosts", body, key=key), 201)["idempotency_replay"]
        path = f"/operator/hosts/{host['id']}"
        assert data_of(await operator.post(f"{path}/drains", {}))["draining"]
        assert data_of(await operator.delete(f"{path}/drains")) == host
        told = data_of(await operator.post(f"{path}/evacuations", {"discard": True}))
        assert told == {"object": "evacuation", "host_id": host["id"], "databases": []}
        again = data_of(await operator.post("/operator/hosts", {**body, "capacity": 9}), 201)
        assert (again["id"], again["capacity"], again["draining"]) == (host["id"], 9, True)
        assert data_of(await operator.delete(path))["deleted"]
        for gone in (
            operator.post(f"{path}/drains", {}),
            operator.post(f"{path}/evacuations", {}),
            operator.delete(path),
        ):
            error_of(await gone, 404, "not_found")
        rows = await fetch(
            "SELECT action, outcome, changes::text FROM audit_events WHERE subject_id = $1 AND object = 'host'"
            " ORDER BY id",
            str(host["id"]),
        )
        done = [row["action"] for row in rows if row["outcome"] == "succeeded"]
        assert done == ["host.add", "host.drain", "host.undrain", "host.evacuate", "host.add", "host.remove"]
        assert str(body["admin_password"]) not in str([row["changes"] for row in rows])


@together(
    ("change", "field"),
    [
        ({"db_type": "oracle"}, "db_type"),
        ({"region": "No Region"}, "region"),
        ({"admin_host": "a b"}, "admin_host"),
        ({"admin_port": 0}, "admin_port"),
        ({"tls": "prefer"}, "tls"),
        ({"tls": "disable", "ca": "x"}, "ca"),
        ({"ca": "no certificate"}, "ca"),
        ({"capacity": 0}, "capacity"),
        ({"connection_capacity": 0}, "connection_capacity"),
        ({"public_port": 65_536}, "public_port"),
    ],
)
async def test_hosts_that_cannot_be_registered(operator: Caller, change: dict[str, object], field: str) -> None:
    body = {"db_type": "postgres", "region": "r-1", "admin_host": "127.0.0.1", "admin_port": free_port()}
    body |= {"admin_user": "a", "admin_password": ""}
    assert field_of(await operator.post("/operator/hosts", {**body, **change})) == field


async def test_pools_and_what_fills_them(shared: LoneApi, operator: Caller) -> None:
    await shared.add_host(region="eu-west-1", engine="mysql")
    await execute("INSERT INTO pool_targets (region, engine, size) VALUES ('eu-west-1', 'mysql', 7)")
    pools = {(one["region"], one["db_type"]): one for one in data_of(await operator.get("/operator/pools"))}
    assert pools["eu-west-1", "mysql"] == {
        "object": "pool",
        "db_type": "mysql",
        "region": "eu-west-1",
        "size": 7,
        "size_from": "operator",
        "ready": 0,
        "coming": 0,
        "missing": 7,
        "open_hosts": 1,
    }
    assert pools["us-east-1", "postgres"]["size_from"] == "setting"
    first = body_of(await operator.get("/operator/pools", params={"limit": "1"}))
    assert first["has_more"]
    rest = {"starting_after": f"{first['data'][0]['region']}/{first['data'][0]['db_type']}"}
    assert first["data"][0] not in data_of(await operator.get("/operator/pools", params=rest))


async def test_findings_with_the_names_of_databases(asking: Caller, operator: Caller) -> None:
    made = data_of(await asking.create("seen"), 202)
    found = [
        Violation(rule="provision_stuck", subject=made["uuid"], detail="is being made for an hour"),
        Violation(rule="schedule_paused", subject="reconcile", detail="is paused"),
    ]
    await write(None, found, {})
    page = body_of(await operator.get("/operator/findings", params={"limit": "1"}))
    assert page["has_more"]
    after = {"starting_after": str(page["data"][0]["id"])}
    (other,) = data_of(await operator.get("/operator/findings", params=after))
    by_rule = {one["rule"]: one for one in (*page["data"], other)}
    assert (by_rule["provision_stuck"]["database"], by_rule["schedule_paused"]["database"]) == ("seen", None)
    assert by_rule["provision_stuck"]["team"] == "Test User"
    await write(None, [], {})
    assert data_of(await operator.get("/operator/findings")) == []


async def test_seals_of_the_audit_log(asking: Caller, operator: Caller) -> None:
    for name in ("one", "two"):
        data_of(await asking.patch(f"/teams/{asking.team_id}", {"name": name}))
        assert await seal_events() > 0
    page = body_of(await operator.get("/operator/audit_seals", params={"limit": "1"}))
    after = {"starting_after": str(page["data"][0]["id"])}
    before = data_of(await operator.get("/operator/audit_seals", params=after))[0]
    assert page["has_more"]
    assert page["data"][0]["previous"] == before["hash"]
    assert page["data"][0]["last_event_id"] > before["last_event_id"]
    data_of(await asking.patch(f"/teams/{asking.team_id}", {"name": "Test User"}))


async def test_a_check_without_temporal(operator: Caller) -> None:
    key = str(uuid4())
    for _ in range(2):
        error_of(await operator.post("/operator/checks", {}, key=key), 503, "service_unavailable")


async def test_operations_of_everyone(asking: Caller, operator: Caller) -> None:
    made = data_of(await asking.create("theirs"), 202)
    params = {"database_uuid": made["uuid"], "open": "true", "team": str(asking.team_id), "type": "create"}
    (found,) = data_of(await operator.get("/operator/operations", params=params))
    assert (found["team_id"], found["team"]) == (asking.team_id, "Test User")
    assert (found["database"], found["overdue"], found["operator_cancellable"]) == ("theirs", False, True)
    assert data_of(await operator.get(f"/operator/operations/{found['uuid']}")) == found
    assert data_of(await operator.get("/operator/operations", params={**params, "overdue": "true"})) == []
    await execute("UPDATE operations SET deadline_at = now() WHERE uuid = $1", found["uuid"])
    (late,) = data_of(await operator.get("/operator/operations", params={**params, "overdue": "true"}))
    assert late["overdue"]
    error_of(await operator.get(f"/operator/operations/{uuid4()}"), 404, "not_found")
    for params in ({"status": "x"}, {"type": "x"}, {"database_uuid": "x"}, {"starting_after": str(uuid4())}):
        assert field_of(await operator.get("/operator/operations", params=params)) == next(iter(params))
    error_of(await operator.get(f"/operations/{found['uuid']}"), 404, "not_found")


async def test_an_operator_cancels_and_retries_what_is_anybodys(asking: Caller, operator: Caller) -> None:
    made = data_of(await asking.create("stuck"), 202)
    (found,) = data_of(await operator.get("/operator/operations", params={"database_uuid": made["uuid"]}))
    path, key = f"/operator/operations/{found['uuid']}", str(uuid4())
    assert data_of(await operator.post(f"{path}/retries", {}), 202)["uuid"] == found["uuid"]
    ended = body_of(await operator.post(f"{path}/cancellations", {}, key=key))
    assert ended["data"]["status"] == "cancelled"
    again = body_of(await operator.post(f"{path}/cancellations", {}, key=key))
    assert again == {**ended, "request_id": again["request_id"], "idempotency_replay": True}
    error_of(await operator.post(f"{path}/retries", {}), 409, "operation_ended")
    error_of(await operator.post(f"{path}/cancellations", {}), 409, "operation_not_cancellable")
    error_of(await asking.get(f"/databases/{made['uuid']}"), 404, "not_found")
    events = data_of(await asking.get("/audit_events", params={"subject": f"operation:{found['uuid']}"}))
    assert {(one["actor"]["user_id"], one["team_id"]) for one in events} == {(operator.user_id, asking.team_id)}
    assert [(one["action"].partition(".")[2], one["outcome"]) for one in reversed(events)] == [
        ("operator_retry", "succeeded"),
        ("operator_cancel", "succeeded"),
        ("operator_retry", "refused"),
        ("operator_cancel", "refused"),
    ]


async def test_pausing_what_is_anybodys(asking: Caller, operator: Caller) -> None:
    made = data_of(await asking.create("mine"), 202)
    error_of(await operator.post(f"/operator/databases/{made['uuid']}/pauses", {}), 422, "database_not_active")
    error_of(await operator.delete(f"/operator/databases/{uuid4()}/pauses"), 404, "not_found")


async def test_whose_mark_goes_while_the_request_is_under_way(asking: Caller, operator: Caller) -> None:
    """The row decides, in the change's own transaction."""
    async with transaction():
        await keep_operator(operator.user_id)
        with pytest.raises(OperatorsOnly):
            await keep_operator(asking.user_id)
