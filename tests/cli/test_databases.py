"""`headwater databases`: which of thousands, in what order, how many; and what may stand for a uuid."""

from uuid import UUID

import pytest

from app.contracts.base import Engine
from app.store.session import fetch
from tests.cli.command import Headwater
from tests.support.client import Caller
from tests.support.in_process import lone_api
from tests.support.store import store

MB = 2**20


@pytest.fixture
async def owners(control_dsn: str) -> tuple[Caller, Caller]:
    """Two teams on two hosts: `orders` and `orders-old` of the one, `orders` of the other."""
    async with lone_api(control_dsn) as api:
        await api.add_host(host="pg.example.com")
        await api.add_host(engine=Engine.MYSQL.value, flavour="mariadb", host="my.example.com", port=3306)
        one, other = await api.caller(), await api.caller()
        for caller, name, fields in (
            (one, "orders", {"plan": "free", "labels": {"env": "production", "owner": "a"}}),
            (one, "orders-old", {"db_type": "mysql", "plan": "launch"}),
            (other, "orders", {"plan": "launch", "labels": {"env": "production"}}),
        ):
            made = await caller.create(name, **{"db_type": "postgres", **fields})  # type: ignore[arg-type]
            assert made.status_code == 202, made.text
        for position, size in ((1, 5 * MB), (3, 70 * MB)):
            await fetch(
                "INSERT INTO database_usage (database_id, measured_at, storage_bytes, connected, runtime_month)"
                " SELECT id, now(), $2, false, now() FROM databases ORDER BY position LIMIT 1 OFFSET $1 - 1",
                position,
                size,
            )
    return one, other


async def names(headwater: Headwater, *arguments: str) -> list[str]:
    return [line["name"] for line in await headwater.json("databases", "list", *arguments)]


async def test_filters(headwater: Headwater, owners: tuple[Caller, Caller]) -> None:
    one, other = owners
    everything = ["orders", "orders-old", "orders"]
    assert await names(headwater) == everything
    assert await names(headwater, "--team", str(one.team_id)) == ["orders-old", "orders"]
    assert await names(headwater, "--team", str(other.team_id), "--name", "ORDER") == ["orders"]
    assert await names(headwater, "--name", "-old") == ["orders-old"]
    assert await names(headwater, "--name", "%") == []
    assert await names(headwater, "--engine", "mysql") == ["orders-old"]
    assert await names(headwater, "--plan", "launch") == ["orders", "orders-old"]
    assert await names(headwater, "--host", "my.example.com:3306") == ["orders-old"]
    assert await names(headwater, "--region", "us-east-1") == everything
    assert "Expected one of us-east-1" in await headwater.refusal("databases", "list", "--region", "mars-1")
    assert "'launch'" in await headwater.refusal("databases", "list", "--plan", "huge", exit_code=2)
    assert await names(headwater, "--status", "provisioning") == everything
    assert await names(headwater, "--status", "active") == []
    assert await names(headwater, "--status", "active", "--status", "provisioning") == everything
    assert await names(headwater, "--plan", "free", "--plan", "launch", "--engine", "mysql") == ["orders-old"]
    assert await names(headwater, "--label", "env:production") == ["orders", "orders"]
    assert await names(headwater, "--label", "env:production", "--label", "owner:a") == ["orders"]
    assert "key:value" in await headwater.refusal("databases", "list", "--label", "env")
    assert "There is no team 4711." in await headwater.refusal("databases", "list", "--team", "4711")
    assert "There is no host db:1." in await headwater.refusal("databases", "list", "--host", "db:1")
    (host,) = {line["host_id"] for line in await headwater.json("databases", "list", "--engine", "postgres")}
    assert await names(headwater, "--host", str(host)) == ["orders", "orders"]
    assert "Invalid value" in await headwater.refusal("databases", "list", "--status", "gone", exit_code=2)


async def test_order_and_length(headwater: Headwater, owners: tuple[Caller, Caller]) -> None:
    largest = await headwater.json("databases", "list", "--sort", "storage")
    assert [line["storage_bytes"] for line in largest] == [70 * MB, 5 * MB, None]
    assert await names(headwater, "--sort", "name", "--limit", "2") == ["orders", "orders"]
    text = await headwater.text("databases", "list", "--sort", "storage", "--limit", "1")
    assert "70.0 MB" in text
    assert text.endswith("1 of 3 databases; 75.0 MB as last measured\n")
    assert (await headwater.text("databases", "list")).endswith("3 databases; 75.0 MB as last measured\n")


async def test_counts(headwater: Headwater, owners: tuple[Caller, Caller]) -> None:
    by_engine = await headwater.json("databases", "count", "--by", "engine")
    assert [(line["group"], line["databases"], line["storage_bytes"]) for line in by_engine] == [
        ("postgres", 2, 75 * MB),
        ("mysql", 1, 0),
    ]
    assert [line["group"] for line in await headwater.json("databases", "count", "--by", "plan")] == ["launch", "free"]
    one = str(owners[0].team_id)
    (line,) = await headwater.json("databases", "count", "--team", one)
    assert (line["databases"], line["connections"]) == (2, 10 + 50)
    assert "There is no team nobody." in await headwater.refusal("databases", "count", "--team", "nobody")


async def test_what_may_stand_for_a_uuid(headwater: Headwater, owners: tuple[Caller, Caller]) -> None:
    lines = await headwater.json("databases", "list")
    old = next(line for line in lines if line["name"] == "orders-old")
    for reference in (old["uuid"], old["uuid"][:8], old["uuid"][:13].upper(), "orders-old"):
        assert (await headwater.json("databases", "inspect", reference))["uuid"] == old["uuid"]
    said = await headwater.refusal("databases", "inspect", "orders")
    assert "'orders' means 2 databases" in said
    assert all(line["uuid"] in said for line in lines if line["name"] == "orders")
    for unknown in (old["uuid"][:3], "orders-", "%", str(UUID(int=1))):
        assert "No such database" in await headwater.refusal("databases", "inspect", unknown)


async def test_a_prefix_of_many(headwater: Headwater, owners: tuple[Caller, Caller], control_dsn: str) -> None:
    async with store(control_dsn):
        await fetch(
            "UPDATE databases SET uuid = overlay(uuid::text placing 'abcd0123' from 1)::uuid WHERE team_id = $1",
            owners[0].team_id,
        )
    said = await headwater.refusal("databases", "pause", "abcd0")
    assert "means 2 databases" in said
    assert "orders-old" in said
