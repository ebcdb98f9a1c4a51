"""`headwater pool`: what is to be ready, and what is."""

from app.contracts.base import Engine
from app.databases.pool.targets import note_setting, targets
from tests.cli.command import Headwater
from tests.support.lone_pool import lone_pool
from tests.support.store import store

_CHOSEN = ("pool", "set", "--region", "us-east-1", "--engine", Engine.POSTGRES.value)


async def test_size_and_readiness(headwater: Headwater, control_dsn: str) -> None:
    headwater = headwater.with_settings(POOL_SIZE="5", TEMPORAL_ADDRESS="127.0.0.1:9")
    assert await headwater.json("pool", "status") == []
    async with lone_pool(control_dsn) as pool:
        await pool.add_members(2, await pool.api.add_host())
        await pool.api.add_host(engine="mysql", region="eu-west-1")
    mysql = {"region": "eu-west-1", "engine": "mysql", "size": 5, "ready": 0}
    postgres = {"region": "us-east-1", "engine": "postgres", "size": 5, "ready": 2}
    assert await headwater.json("pool", "status") == [mysql, postgres]
    assert await headwater.json(*_CHOSEN, "--size", "20") == {**postgres, "size": 20}
    assert await headwater.json("pool", "status") == [mysql, {**postgres, "size": 20}]
    assert "20" in await headwater.text("pool", "status")
    assert await headwater.json(*_CHOSEN, "--default") == postgres


async def test_going_back_to_the_workers_setting(headwater: Headwater, control_dsn: str) -> None:
    """The command's own environment may say another size than the workers'."""
    headwater = headwater.with_settings(POOL_SIZE="5", TEMPORAL_ADDRESS="127.0.0.1:9")
    async with lone_pool(control_dsn) as pool:
        await pool.api.add_host()
    async with store(control_dsn):
        await note_setting(await targets(7), 7)
    assert (await headwater.json("pool", "status"))[0]["size"] == 7
    assert (await headwater.json(*_CHOSEN, "--size", "20"))["size"] == 20
    async with store(control_dsn):
        await note_setting(await targets(8), 8)
    assert (await headwater.json("pool", "status"))[0]["size"] == 20
    assert (await headwater.json(*_CHOSEN, "--default"))["size"] == 8


async def test_what_can_not_be_set(headwater: Headwater, control_dsn: str) -> None:
    async with lone_pool(control_dsn) as pool:
        await pool.api.add_host()
    postgres, size = ("--engine", "postgres"), ("--size", "1")
    assert "mars-1" in await headwater.refusal("pool", "set", "--region", "mars-1", *postgres, *size)
    assert "mysql" in await headwater.refusal("pool", "set", "--region", "us-east-1", "--engine", "mysql", *size)
    for wrong in (("--size", "-1"), (*size, "--default"), (), ("--size", "many")):
        await headwater.refusal(*_CHOSEN, *wrong, exit_code=2)


async def test_members_are_listed_apart(headwater: Headwater, control_dsn: str) -> None:
    async with lone_pool(control_dsn) as pool:
        claimed, member = await pool.add_members(2, await pool.api.add_host())
        caller = await pool.api.caller()
        assert (await caller.create("mine")).json()["data"]["uuid"] == str(claimed)
    assert [line["uuid"] for line in await headwater.json("databases", "list")] == [str(claimed)]
    (line,) = await headwater.json("databases", "list", "--pooled")
    assert (line["uuid"], line["team"], line["name"]) == (str(member), None, "")
    assert (await headwater.json("databases", "inspect", str(member)))["team_id"] is None
