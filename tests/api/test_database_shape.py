"""A Database has every specified field, and a password only where the specification shows one (section 2.1)."""

import asyncio
from datetime import datetime
from time import monotonic
from typing import Any
from uuid import UUID

import pytest

from app.store.session import fetch
from tests.support.answers import body_of, data_of
from tests.support.in_process import LoneApi
from tests.support.moves import make_active
from tests.support.waiting import LIMIT_SECONDS, until

MASK = "********"
FIELDS: dict[str, type | tuple[type, ...]] = {
    "object": str,
    "uuid": str,
    "name": str,
    "status": str,
    "status_reason": (dict, type(None)),
    "region": str,
    "plan": str,
    "quotas": dict,
    "limits": dict,
    "db_type": str,
    "host": str,
    "port": int,
    "tls_mode": str,
    "db_name": str,
    "db_username": str,
    "team_id": int,
    "team_name": str,
    "connection_string": str,
    "deletion_protection": bool,
    "expires_at": (str, type(None)),
    "labels": dict,
    "created_at": str,
    "updated_at": str,
}


def check_database(data: dict[str, Any], *, with_password: bool) -> None:
    assert data.keys() == FIELDS.keys() | (
        {"db_password", "tls_ca", "connections_limited_to"} if with_password else set()
    )
    for field, kind in FIELDS.items():
        assert isinstance(data[field], kind), field
    assert data["object"] == "database"
    assert str(UUID(data["uuid"])) == data["uuid"]
    for moment in ("created_at", "updated_at"):
        assert datetime.fromisoformat(data[moment]).tzinfo is not None
    for limits in ("quotas", "limits"):
        assert data[limits].keys() == {"storage_hard_limit_gb", "connection_hard_limit", "warning_threshold_pct"}
    password = data["db_password"] if with_password else MASK
    assert data["connection_string"] == (
        f"postgresql://{data['db_username']}:{password}@{data['host']}:{data['port']}/{data['db_name']}"
    )


async def test_an_accepted_create(lone: LoneApi) -> None:
    caller = await lone.caller()
    body = body_of(await caller.create("orders"), 202)
    assert body.keys() == {"message", "data", "operation", "provisioning", "request_id"}
    assert isinstance(body["message"], str)
    check_database(body["data"], with_password=True)
    assert (body["data"]["status"], body["data"]["name"]) == ("provisioning", "orders")
    poll_url = f"/api/v1/databases/{body['data']['uuid']}"
    assert body["provisioning"] == {"completed": False, "waited_seconds": 0, "poll_url": poll_url}
    assert data_of(await lone.http.get(poll_url, headers={"Authorization": f"Bearer {caller.api_key}"}))


async def test_the_password_of_a_create_stays_the_same(lone: LoneApi) -> None:
    caller = await lone.caller()
    made = data_of(await caller.create(), 202)
    await make_active(made["uuid"])
    seen = data_of(await caller.get(f"/databases/{made['uuid']}"))
    check_database(seen, with_password=True)
    assert seen["db_password"] == made["db_password"]
    assert seen["status"] == "active"


async def test_a_list_shows_no_password(lone: LoneApi) -> None:
    caller = await lone.caller()
    password = data_of(await caller.create(), 202)["db_password"]
    answer = await caller.get("/databases")
    body = body_of(answer)
    assert body.keys() == {"data", "has_more", "request_id"}
    check_database(body["data"][0], with_password=False)
    assert password not in answer.text


@pytest.mark.parametrize(("path", "change"), [("", {"name": "b"}), ("/quotas", {"warning_threshold_pct": 50})])
async def test_a_change_shows_no_password(lone: LoneApi, path: str, change: dict[str, Any]) -> None:
    caller = await lone.caller()
    made = data_of(await caller.create(), 202)
    answer = await caller.patch(f"/databases/{made['uuid']}{path}", change)
    body = body_of(answer)
    assert body.keys() == ({"message", "data", "operation", "request_id"} if path else {"data", "request_id"})
    check_database(body["data"], with_password=False)
    assert made["db_password"] not in answer.text


async def test_a_waited_create_is_answered_when_it_is_active(lone: LoneApi) -> None:
    caller = await lone.caller()
    asked = asyncio.create_task(caller.create(wait=True))
    (row,) = await until(lambda: fetch("SELECT uuid FROM databases"))
    await make_active(str(row["uuid"]))
    async with asyncio.timeout(LIMIT_SECONDS):
        body = body_of(await asked, 201)
    assert body.keys() == {"message", "data", "operation", "request_id"}
    check_database(body["data"], with_password=True)
    assert body["data"]["status"] == "active"


async def test_a_create_that_is_waited_for_in_vain(lone: LoneApi) -> None:
    caller = await lone.caller()
    began = monotonic()
    answer = await caller.post("/databases", {"name": "a"}, params={"wait": "true", "timeout": "1"})
    elapsed = monotonic() - began
    body = body_of(answer, 202)
    assert body["provisioning"]["completed"] is False
    assert 1 <= body["provisioning"]["waited_seconds"] <= elapsed


async def test_ipv6_hosts_are_bracketed_in_the_connection_string(lone: LoneApi) -> None:
    await lone.add_host(host="2001:db8::7", region="eu-west-1")
    caller = await lone.caller()
    made = data_of(await caller.create(region="eu-west-1"), 202)
    assert made["host"] == "2001:db8::7"
    assert "@[2001:db8::7]:5432/" in made["connection_string"]
