"""`POST /databases`: defaults, teams, plans and overrides. Interface specification, section 4.4."""

from typing import Any

import pytest

from app.store.session import fetch
from tests.support.answers import body_of, data_of, error_of, field_of
from tests.support.in_process import LoneApi
from tests.support.meeting import meet
from tests.support.store import execute_at


async def test_defaults(lone: LoneApi) -> None:
    caller = await lone.caller(tier="free")
    made = data_of(await caller.create(), 202)
    assert (made["db_type"], made["plan"], made["region"]) == ("postgres", "free", "us-east-1")
    assert (made["team_id"], made["team_name"]) == (caller.team_id, "Test User")
    assert made["quotas"] == {
        "storage_hard_limit_gb": None,
        "connection_hard_limit": None,
        "warning_threshold_pct": None,
    }
    assert made["limits"] == {"storage_hard_limit_gb": 0.5, "connection_hard_limit": 10, "warning_threshold_pct": 80}


# A worker that is quicker than any: the database is there before the request's commit has returned.
_MADE_AT_ONCE = """
CREATE FUNCTION make() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS $$
BEGIN
    UPDATE databases SET status = 'active', provisioned_at = now() WHERE id = NEW.id;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER made AFTER INSERT ON databases DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION make();
"""


async def test_without_a_wait_it_is_being_provisioned_however_soon_it_is_made(
    lone: LoneApi, control_admin_dsn: str
) -> None:
    await execute_at(control_admin_dsn, _MADE_AT_ONCE)
    caller = await lone.caller()
    answer = body_of(await caller.create(key="one"), 202)
    assert (answer["data"]["status"], answer["operation"]["status"]) == ("provisioning", "pending")
    assert answer["provisioning"]["completed"] is False
    assert body_of(await caller.create(key="one"), 202)["idempotency_replay"] is True
    uuid = answer["data"]["uuid"]
    assert data_of(await caller.get(f"/databases/{uuid}"))["status"] == "active"
    assert data_of(await caller.create(wait=True), 201)["status"] == "active"


async def test_names_need_not_be_unique(lone: LoneApi) -> None:
    caller = await lone.caller()
    first, second = data_of(await caller.create("same"), 202), data_of(await caller.create("same"), 202)
    assert first["uuid"] != second["uuid"]
    assert first["db_name"] != second["db_name"]


async def test_overrides(lone: LoneApi) -> None:
    caller = await lone.caller()
    quotas: dict[str, Any] = {"storage_hard_limit_gb": 1.5, "connection_hard_limit": 20, "warning_threshold_pct": 90}
    made = data_of(await caller.create(**quotas), 202)
    assert (made["quotas"], made["limits"]) == (quotas, quotas)


async def test_an_override_of_null_is_none(lone: LoneApi) -> None:
    caller = await lone.caller()
    nulls: dict[str, Any] = dict.fromkeys(("storage_hard_limit_gb", "connection_hard_limit", "warning_threshold_pct"))
    assert data_of(await caller.create(**nulls), 202)["limits"]["connection_hard_limit"] == 10


async def test_the_engine_asked_for(lone: LoneApi) -> None:
    await lone.add_host(engine="mysql", flavour="mariadb", port=3306)
    caller = await lone.caller()
    made = data_of(await caller.create(db_type="mysql"), 202)
    assert (made["db_type"], made["port"]) == ("mysql", 3306)
    assert made["connection_string"].startswith("mysql://")


async def test_an_engine_that_no_host_serves(lone: LoneApi) -> None:
    caller = await lone.caller()
    assert field_of(await caller.create(db_type="mysql")) == "db_type"


async def test_a_region_that_serves_another_engine_only(lone: LoneApi) -> None:
    await lone.add_host(engine="mysql", flavour="mariadb", port=3306, region="eu-west-1")
    caller = await lone.caller()
    answer = await caller.create(region="eu-west-1")
    assert field_of(answer) == "region"
    assert "us-east-1" in answer.json()["error"]["message"]


async def test_another_of_the_callers_teams(lone: LoneApi) -> None:
    caller, other = await lone.caller(), await lone.caller()
    await fetch("INSERT INTO memberships (user_id, team_id) VALUES ($1, $2)", caller.user_id, other.team_id)
    assert data_of(await caller.create(team_id=other.team_id), 202)["team_id"] == other.team_id
    assert data_of(await caller.create(), 202)["team_id"] == caller.team_id


async def test_a_team_of_strangers(lone: LoneApi) -> None:
    caller, other = await lone.caller(), await lone.caller()
    assert field_of(await caller.create(team_id=other.team_id)) == "team_id"
    assert field_of(await caller.create(team_id=10**9)) == "team_id"


async def test_a_caller_without_a_team(lone: LoneApi) -> None:
    caller = await lone.caller()
    await fetch("DELETE FROM memberships WHERE user_id = $1", caller.user_id)
    error_of(await caller.create(), 403, "not_a_member")


@pytest.mark.parametrize("plan", ["launch", "grow", "pro"])
async def test_a_free_team_has_the_free_plan_only(lone: LoneApi, plan: str) -> None:
    free, paying = await lone.caller(tier="free"), await lone.caller(tier="pro")
    assert field_of(await free.create(plan=plan), "plan_limit_exceeded") == "plan"
    assert data_of(await paying.create(plan=plan), 202)["plan"] == plan


async def test_a_free_team_has_one_database(lone: LoneApi) -> None:
    caller = await lone.caller(tier="free")
    made = data_of(await caller.create(), 202)
    assert field_of(await caller.create(), "plan_limit_exceeded") == "team_id"
    await fetch("UPDATE databases SET status = 'deleted' WHERE id = (SELECT max(id) FROM databases)")
    assert data_of(await caller.create(), 202)["uuid"] != made["uuid"]


async def test_a_paying_team_has_many(lone: LoneApi) -> None:
    caller = await lone.caller(tier="enterprise")
    for _ in range(3):
        body_of(await caller.create(), 202)


async def test_two_creates_at_once_of_a_free_team(lone: LoneApi) -> None:
    caller = await lone.caller(tier="free")
    answers = await meet(lone.control_dsn, "teams", (caller.create() for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [202] + [422] * 7
    assert (await fetch("SELECT count(*) FROM databases WHERE team_id = $1", caller.team_id))[0]["count"] == 1


@pytest.mark.parametrize(
    ("raised", "lowered"),
    [
        ({"storage_hard_limit_gb": 0.6}, {"storage_hard_limit_gb": 0.4}),
        ({"connection_hard_limit": 11}, {"connection_hard_limit": 9}),
    ],
)
async def test_an_override_lowers_for_anyone_and_raises_for_who_pays(
    lone: LoneApi, raised: dict[str, Any], lowered: dict[str, Any]
) -> None:
    free, paying = await lone.caller(tier="free"), await lone.caller(tier="pro")
    assert field_of(await free.create(**raised), "plan_limit_exceeded") == next(iter(raised))
    body_of(await free.create(**lowered), 202)
    body_of(await paying.create(**raised), 202)


async def test_a_refused_create_leaves_nothing(lone: LoneApi) -> None:
    caller = await lone.caller(tier="free")
    error_of(await caller.create(plan="pro"), 422, "plan_limit_exceeded")
    for table in ("databases", "events", "workflow_starts"):
        assert not await fetch(f"SELECT 1 FROM {table}")


async def test_what_is_stored_of_a_password_is_sealed(lone: LoneApi) -> None:
    caller = await lone.caller()
    password = data_of(await caller.create(), 202)["db_password"].encode()
    for table in ("databases", "events", "workflow_starts", "idempotency_keys"):
        rows = await fetch(f"SELECT t::text FROM {table} t")
        assert rows
        for row in rows:
            assert password.decode() not in row["t"]
            assert password.hex() not in row["t"]
