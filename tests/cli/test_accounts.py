"""`headwater users`, `keys` and `teams`."""

import hashlib
from datetime import UTC, datetime
from typing import Any

import pytest

from app.store.session import fetch
from tests.cli.command import Headwater
from tests.support.store import store


async def user(headwater: Headwater, *more: str, email: str = "ada@example.com") -> dict[str, Any]:
    made: dict[str, Any] = await headwater.json("users", "create", "--email", email, "--name", "Ada", *more)
    return made


async def key(headwater: Headwater, user_id: int, *more: str, scopes: str = "databases:*") -> Any:
    return await headwater.json("keys", "create", "--user", str(user_id), "--name", "ci", "--scopes", scopes, *more)


async def test_a_user_and_a_team(headwater: Headwater, control_dsn: str) -> None:
    made = await user(headwater, "--tier", "pro")
    assert made.keys() == {"user_id", "team_id"}
    other = await user(headwater, "--team", "Analysts", email="bob@example.com")
    third = await user(headwater, "--team", "Analysts", email="eve@example.com")
    assert made["team_id"] != other["team_id"] == third["team_id"]
    async with store(control_dsn):
        tiers = [row["tier"] for row in await fetch("SELECT tier FROM teams ORDER BY id")]
    assert tiers == ["pro", "free"]


async def test_a_user_for_people(headwater: Headwater) -> None:
    text = await headwater.text("users", "create", "--email", "ada@example.com", "--name", "Ada")
    assert "user_id" in text
    assert "team_id" in text


async def test_a_user_that_cannot_be(headwater: Headwater) -> None:
    await user(headwater)
    arguments = ("users", "create", "--email", "ada@example.com", "--name", "Ada")
    assert "ada@example.com exists already" in await headwater.refusal(*arguments)
    assert "must not be blank" in await headwater.refusal("users", "create", "--email", "a@example.com", "--name", " ")
    assert "not an email" in await headwater.refusal("users", "create", "--email", "ada", "--name", "Ada")
    assert "--tier" in await headwater.refusal(*arguments, "--tier", "gold", exit_code=2)
    assert "--name" in await headwater.refusal("users", "create", "--email", "a@example.com", exit_code=2)


async def test_an_operator_alone_has_operators_keys(headwater: Headwater, control_dsn: str) -> None:
    user_id = str((await user(headwater))["user_id"])
    arguments = ("keys", "create", "--user", user_id, "--name", "ops", "--scopes", "operator:read")
    assert "Only an operator's keys" in await headwater.refusal(*arguments)
    marked = await headwater.json("users", "set", user_id, "--operator")
    assert marked == {"user_id": int(user_id), "operator": True, "before": False}
    assert [line["operator"] for line in await headwater.json("users", "list")] == [True]
    assert (await headwater.json(*arguments))["api_key"].startswith("pk_live_")
    assert not (await headwater.json("users", "set", user_id, "--no-operator"))["operator"]
    assert "Only an operator's keys" in await headwater.refusal(*arguments)
    assert "No such user" in await headwater.refusal("users", "set", "4711", "--operator")
    async with store(control_dsn):
        events = await fetch("SELECT subject_id, changes::text FROM audit_events WHERE action = 'user.change'")
    assert [tuple(row.values()) for row in events] == [
        (user_id, '{"operator": [false, true]}'),
        (user_id, '{"operator": [true, false]}'),
    ]


async def test_a_key_is_shown_once(headwater: Headwater, control_dsn: str) -> None:
    user_id = (await user(headwater))["user_id"]
    made = await key(
        headwater,
        user_id,
        *("--requests-per-minute", "7", "--monthly-quota", "99", "--inactive-ttl-days", "3"),
        *("--allow-ip", "10.0.0.0/8", "--allow-ip", "::1", "--expires-at", "2030-01-31T12:00:00+02:00"),
        scopes="databases:read, webhooks:write",
    )
    assert made.keys() == {"id", "api_key"}
    async with store(control_dsn):
        (row,) = await fetch("SELECT * FROM api_keys")
    assert row["hash"] == hashlib.sha256(made["api_key"].encode()).digest()
    assert made["api_key"] not in str(row)
    assert (row["id"], row["user_id"], row["name"]) == (made["id"], user_id, "ci")
    assert row["scopes"] == ["databases:read", "webhooks:write"]
    assert (row["requests_per_minute"], row["monthly_quota"], row["inactive_ttl_days"]) == (7, 99, 3)
    assert row["allowed_ips"] == ["10.0.0.0/8", "::1"]
    assert row["expires_at"] == datetime(2030, 1, 31, 10, tzinfo=UTC)


async def test_a_key_for_people(headwater: Headwater) -> None:
    user_id = (await user(headwater))["user_id"]
    text = await headwater.text("keys", "create", "--user", str(user_id), "--name", "n", "--scopes", "databases:read")
    assert "pk_live_" in text


@pytest.mark.parametrize(
    ("options", "said", "exit_code"),
    [
        (("--scopes", "databases:all"), "databases:all", 1),
        (("--scopes", ","), "at least one scope", 1),
        (("--scopes", "databases:*", "--allow-ip", "everywhere"), "everywhere", 1),
        (("--scopes", "databases:*", "--requests-per-minute", "0"), "--requests-per-minute", 2),
        (("--scopes", "databases:*", "--monthly-quota", "9999999999"), "--monthly-quota", 2),
        (("--scopes", "databases:*", "--name", " "), "name", 1),
        (("--scopes", "databases:*", "--expires-at", "tomorrow"), "ISO 8601", 2),
        (("--scopes", "databases:*", "--expires-at", "2030-01-31"), "offset", 2),
        (("--scopes", "databases:*", "--expires-at", "2020-01-31T00:00:00Z"), "has passed", 2),
    ],
)
async def test_a_key_that_cannot_be(headwater: Headwater, options: tuple[str, ...], said: str, exit_code: int) -> None:
    user_id = str((await user(headwater))["user_id"])
    arguments = ("keys", "create", "--user", user_id, "--name", "n", *options)
    assert said in await headwater.refusal(*arguments, exit_code=exit_code)


async def test_a_key_of_nobody(headwater: Headwater) -> None:
    arguments = ("keys", "create", "--user", "404", "--name", "n", "--scopes", "databases:*")
    assert "No such user" in await headwater.refusal(*arguments)


async def test_revoking_a_key(headwater: Headwater, control_dsn: str) -> None:
    made = await key(headwater, (await user(headwater))["user_id"])
    first = await headwater.json("keys", "revoke", str(made["id"]))
    again = await headwater.json("keys", "revoke", str(made["id"]))
    assert (first["id"], first["revoked"], first["already_revoked"]) == (made["id"], True, False)
    assert again == {**first, "already_revoked": True}
    async with store(control_dsn):
        (row,) = await fetch("SELECT revoked_at FROM api_keys")
    assert row["revoked_at"] == datetime.fromisoformat(first["revoked_at"])
    assert "No such API key" in await headwater.refusal("keys", "revoke", "404")


async def test_the_tier_of_a_team(headwater: Headwater, control_dsn: str) -> None:
    team_id = (await user(headwater))["team_id"]
    changed = await headwater.json("teams", "set", str(team_id), "--tier", "enterprise")
    assert changed == {"team_id": team_id, "tier": "enterprise", "queries": "ddl"}
    assert "pro" in await headwater.text("teams", "set", str(team_id), "--tier", "pro")
    async with store(control_dsn):
        (row,) = await fetch("SELECT tier FROM teams")
    assert row["tier"] == "pro"
    assert "No such team" in await headwater.refusal("teams", "set", "404", "--tier", "pro")


async def test_the_members_of_a_team(headwater: Headwater, control_dsn: str) -> None:
    ada = await user(headwater, "--team", "Orders")
    bob = await user(headwater, "--team", "Orders", "--role", "viewer", email="bob@example.com")
    eve = await user(headwater, email="eve@example.com")
    team, roles = str(ada["team_id"]), {}
    for member in await headwater.json("teams", "members", team):
        roles[member["email"]] = member["role"]
    assert roles == {"ada@example.com": "owner", "bob@example.com": "viewer"}
    added = await headwater.json("teams", "add-member", team, str(eve["user_id"]), "--role", "admin")
    assert (added["user_id"], added["role"]) == (eve["user_id"], "admin")
    assert "keeps an owner" in await headwater.refusal("teams", "remove-member", team, str(ada["user_id"]))
    assert "keeps an owner" in await headwater.refusal("teams", "set-role", team, str(ada["user_id"]), "admin")
    assert (await headwater.json("teams", "set-role", team, str(bob["user_id"]), "owner"))["role"] == "owner"
    assert (await headwater.json("teams", "remove-member", team, str(ada["user_id"])))["user_id"] == ada["user_id"]
    assert "boss" in await headwater.refusal("teams", "set-role", team, str(bob["user_id"]), "boss", exit_code=2)
    assert "No such team" in await headwater.refusal("teams", "set-role", "404", str(bob["user_id"]), "owner")
    async with store(control_dsn):
        events = await fetch(
            "SELECT action FROM audit_events WHERE action LIKE 'member.%' AND team_id = $1 ORDER BY id", ada["team_id"]
        )
    assert [event["action"] for event in events] == ["member.add", "member.change", "member.remove"]


async def test_how_far_a_teams_questions_may_go(headwater: Headwater, control_dsn: str) -> None:
    team_id = (await user(headwater, "--tier", "pro"))["team_id"]
    changed = await headwater.json("teams", "set", str(team_id), "--queries", "read")
    assert changed == {"team_id": team_id, "tier": "pro", "queries": "read"}
    async with store(control_dsn):
        (row,) = await fetch("SELECT tier, queries FROM teams")
    assert (row["tier"], row["queries"]) == ("pro", "read")
    assert "--queries" in await headwater.refusal("teams", "set", str(team_id), "--queries", "all", exit_code=2)
    assert "--tier, --queries" in await headwater.refusal("teams", "set", str(team_id), exit_code=2)


async def test_users_and_teams_are_listed(headwater: Headwater) -> None:
    ada = await user(headwater, "--team", "Analysts", "--tier", "pro")
    bob = await user(headwater, "--team", "Analysts", email="bob@example.com")
    users = await headwater.json("users", "list")
    assert [(one["id"], one["email"], one["team_ids"]) for one in users] == [
        (ada["user_id"], "ada@example.com", [ada["team_id"]]),
        (bob["user_id"], "bob@example.com", [ada["team_id"]]),
    ]
    [team] = await headwater.json("teams", "list")
    assert team == {
        "id": ada["team_id"],
        "name": "Analysts",
        "tier": "pro",
        "queries": "ddl",
        "users": 2,
        "databases": 0,
    }
    assert "Analysts" in await headwater.text("teams", "list")


async def test_keys_are_listed_without_what_they_open(headwater: Headwater) -> None:
    ada, bob = await user(headwater), await user(headwater, email="bob@example.com")
    first = await key(headwater, ada["user_id"])
    second = await key(headwater, bob["user_id"], "--monthly-quota", "5", scopes="databases:read")
    listed = await headwater.json("keys", "list")
    assert [(one["id"], one["user_id"], one["scopes"]) for one in listed] == [
        (second["id"], bob["user_id"], ["databases:read"]),
        (first["id"], ada["user_id"], ["databases:*"]),
    ]
    assert listed[0]["monthly_quota"] == 5
    assert listed[0]["preview"].startswith(second["api_key"][:12])
    assert second["api_key"] not in await headwater.text("keys", "list")
    await headwater.json("keys", "revoke", str(first["id"]))
    assert [one["id"] for one in await headwater.json("keys", "list")] == [second["id"]]
    assert [one["id"] for one in await headwater.json("keys", "list", "--user", str(ada["user_id"]))] == []
    [revoked] = await headwater.json("keys", "list", "--user", str(ada["user_id"]), "--all")
    assert revoked["revoked_at"] is not None
