"""`GET /database_types`. Interface specification, sections 2.7 and 4.3."""

from typing import Any

from app.store.session import fetch
from tests.support.answers import body_of
from tests.support.in_process import LoneApi


async def catalog(lone: LoneApi) -> dict[str, dict[str, Any]]:
    caller = await lone.caller(scopes=("databases:read",))
    body = body_of(await caller.get("/database_types"))
    assert body.keys() == {"data", "request_id"}
    for entry in body["data"]:
        assert entry.keys() == {"value", "label", "is_provisionable", "is_available", "regions", "extensions"}
        for region in entry["regions"]:
            assert region.keys() == {"code", "label", "is_available"}
    return {entry["value"]: entry for entry in body["data"]}


async def test_the_engines(lone: LoneApi) -> None:
    entries = await catalog(lone)
    assert entries.keys() == {"postgres", "mysql", "sqlite"}
    assert entries["postgres"] == {
        "value": "postgres",
        "label": "PostgreSQL",
        "is_provisionable": True,
        "is_available": True,
        "regions": [{"code": "us-east-1", "label": "US East 1", "is_available": True}],
        "extensions": [],
    }
    for value, label in (("mysql", "MySQL"), ("sqlite", "SQLite")):
        assert entries[value] == {
            "value": value,
            "label": label,
            "is_provisionable": False,
            "is_available": False,
            "regions": [],
            "extensions": [],
        }


async def test_the_regions_are_those_of_the_hosts(lone: LoneApi) -> None:
    await lone.add_host(port=5433)
    await lone.add_host(port=5434, region="ap-southeast-1")
    await lone.add_host(port=5435, region="rack7")
    await lone.add_host(engine="mysql", port=3306, region="eu-west-1")
    entries = await catalog(lone)
    regions = {region["code"]: region["label"] for region in entries["postgres"]["regions"]}
    assert regions == {"us-east-1": "US East 1", "ap-southeast-1": "Asia Pacific Southeast 1", "rack7": "rack7"}
    assert [region["code"] for region in entries["mysql"]["regions"]] == ["eu-west-1"]


async def test_a_region_is_available_while_one_of_its_hosts_is(lone: LoneApi) -> None:
    await lone.add_host(port=5433)
    await lone.add_host(port=5434, region="eu-west-1")
    await fetch("UPDATE engine_hosts SET draining = true WHERE port IN (5432, 5434)")
    regions = (await catalog(lone))["postgres"]["regions"]
    assert {region["code"]: region["is_available"] for region in regions} == {"eu-west-1": False, "us-east-1": True}
    await fetch("UPDATE engine_hosts SET draining = true")
    postgres = (await catalog(lone))["postgres"]
    assert postgres["is_available"] is False


async def test_extensions_are_listed_where_every_host_of_the_region_has_them(lone: LoneApi) -> None:
    await fetch("UPDATE engine_hosts SET extensions = '{citext,hstore}'")
    await lone.add_host(port=5433, extensions=["citext"])
    await lone.add_host(port=5434, region="eu-west-1", extensions=["citext", "hstore"])
    await lone.add_host(port=5435, region="eu-west-1", extensions=[], draining=True)
    entries = await catalog(lone)
    assert entries["postgres"]["extensions"] == [
        {"name": "citext", "regions": ["eu-west-1", "us-east-1"]},
        {"name": "hstore", "regions": ["eu-west-1"]},
    ]
    assert entries["mysql"]["extensions"] == []
