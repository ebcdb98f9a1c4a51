"""Making users, teams and keys. Interface specification, section 5."""

import asyncio
import hashlib
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from app.auth.invitations import InvitationRecord
from app.auth.keys import KeyControls, create_key, revoke_key
from app.auth.roles import Role
from app.auth.scopes import Scope, grants
from app.auth.users import NewUser, comparable, create_user, find_user, set_team
from app.core.errors import InvalidField, NotFound
from app.store.session import fetch, fetch_scalar
from tests.support.together import together


async def new_user(**options: Any) -> NewUser:
    return await create_user(email=f"{uuid4().hex}@example.com", name="Test User", **options)


async def test_a_key_is_stored_as_its_digest_and_controls(own_store: None) -> None:
    user = await new_user()
    controls = KeyControls(
        requests_per_minute=3,
        monthly_quota=4,
        allowed_ips=("10.0.0.0/8",),
        inactive_ttl_days=5,
        expires_at=datetime(2030, 1, 1, tzinfo=UTC),
    )
    made = await create_key(user_id=user.user_id, name="n", scopes=["queries:write"], controls=controls)
    assert made.api_key.startswith("pk_live_")
    (row,) = await fetch("SELECT * FROM api_keys WHERE id = $1", made.id)
    assert row["hash"] == hashlib.sha256(made.api_key.encode()).digest()
    assert (row["name"], row["scopes"], row["allowed_ips"]) == ("n", ["queries:write"], ["10.0.0.0/8"])
    assert (row["requests_per_minute"], row["monthly_quota"], row["inactive_ttl_days"]) == (3, 4, 5)
    assert row["expires_at"] == controls.expires_at


async def test_every_key_is_another(own_store: None) -> None:
    user = await new_user()
    made = [await create_key(user_id=user.user_id, name="n", scopes=["queries:write"]) for _ in range(3)]
    assert len({key.api_key for key in made}) == 3


@pytest.mark.parametrize(
    ("scopes", "controls", "field"),
    [
        ([], {}, "scopes"),
        (["databases:all"], {}, "scopes"),
        (["databases:read", "Databases:Read"], {}, "scopes"),
        (["databases:read"], {"allowed_ips": ("10.0.0.300",)}, "allow_ip"),
        (["databases:read"], {"allowed_ips": ("fe80::1%eth0",)}, "allow_ip"),
        (["databases:read"], {"inactive_ttl_days": 36_501}, "inactive_ttl_days"),
        (["databases:read"], {"expires_at": datetime.max.replace(tzinfo=UTC)}, "expires_at"),
        (["databases:read"], {"requests_per_minute": 0}, "requests_per_minute"),
        (["databases:read"], {"monthly_quota": 0}, "monthly_quota"),
        (["databases:read"], {"inactive_ttl_days": 2**31}, "inactive_ttl_days"),
    ],
)
async def test_a_key_that_cannot_be(own_store: None, scopes: list[str], controls: dict[str, Any], field: str) -> None:
    user = await new_user()
    with pytest.raises(InvalidField) as refused:
        await create_key(user_id=user.user_id, name="n", scopes=scopes, controls=KeyControls(**controls))
    assert refused.value.details == {"field": field}


async def test_a_key_of_nobody(own_store: None) -> None:
    with pytest.raises(NotFound):
        await create_key(user_id=10**9, name="n", scopes=["databases:read"])


async def test_revoking(own_store: None) -> None:
    user = await new_user()
    key = await create_key(user_id=user.user_id, name="n", scopes=["databases:read"])
    await revoke_key(key.id)
    (first,) = await fetch("SELECT revoked_at FROM api_keys WHERE id = $1", key.id)
    await revoke_key(key.id)
    assert await fetch("SELECT revoked_at FROM api_keys WHERE id = $1", key.id) == [first]
    with pytest.raises(NotFound):
        await revoke_key(10**9)


async def test_a_user_has_a_team_of_their_own(own_store: None) -> None:
    first, second = await new_user(), await new_user(tier="enterprise")
    assert first.team_id != second.team_id
    tiers = await fetch(
        "SELECT tier FROM teams WHERE id = any($1::bigint[]) ORDER BY id", [first.team_id, second.team_id]
    )
    assert [row["tier"] for row in tiers] == ["free", "enterprise"]


async def test_an_email_is_one_users(own_store: None) -> None:
    email = f"{uuid4().hex}@example.com"
    await create_user(email=email, name="a")
    before = await fetch("SELECT count(*) FROM teams")
    for again in (email, email.upper()):
        with pytest.raises(InvalidField, match=again):
            await create_user(email=again, name="b")
    assert await fetch("SELECT count(*) FROM teams") == before


async def test_of_one_email_written_differently_at_once_one_user_is_made(own_store: None) -> None:
    email = f"a{uuid4().hex}@example.com"
    writings = [email, email.upper(), email.capitalize(), email.replace("example", "EXAMPLE")]
    made = await asyncio.gather(*(create_user(email=one, name="a") for one in writings), return_exceptions=True)
    assert [type(one) for one in made if isinstance(one, Exception)] == [InvalidField] * 3
    assert [one.user_id for one in made if isinstance(one, NewUser)] == [await find_user(email)]


@together(
    ("one", "other", "equal"),
    [
        ("grace@example.com", "Grace@EXAMPLE.com", True),
        ("a@straße.example", "a@strasse.example", False),
        ("é@example.com", "É@example.com", False),
        ("k@example.com", "\N{KELVIN SIGN}@example.com", False),
    ],
)
async def test_which_emails_are_equal(own_store: None, one: str, other: str, equal: bool) -> None:
    """To us and to our database."""
    assert (comparable(one) == comparable(other)) == equal
    made = await create_user(email=one, name="a")
    assert await find_user(other) == (made.user_id if equal else None)
    invitation = InvitationRecord(
        id=1,
        team_id=1,
        role=Role.VIEWER,
        email=one,
        invited_by=None,
        accepted_by=None,
        accepted_at=None,
        expired=False,
        expires_at=datetime.now(UTC),
        created_at=datetime.now(UTC),
    )
    assert invitation.is_for(other) == equal


async def test_two_users_of_one_email_from_before(own_store: None) -> None:
    email = f"a{uuid4().hex}@example.com"
    sql = "INSERT INTO users (email, name) VALUES ($1, 'a') RETURNING id"
    first, second = [await fetch_scalar(int, sql, one) for one in (email.upper(), email)]
    found = [await find_user(one) for one in (email, email.upper(), email.capitalize())]
    assert found == [second, first, first]


@pytest.mark.parametrize("email", ["", "a", "@example.com", "a@", "a b@example.com", "a@example.com\n"])
async def test_what_is_no_email(own_store: None, email: str) -> None:
    with pytest.raises(InvalidField) as refused:
        await create_user(email=email, name="a")
    assert refused.value.details == {"field": "email"}


async def test_joining_a_team_by_its_name(own_store: None) -> None:
    name = uuid4().hex
    made = await asyncio.gather(*(new_user(team=name, tier="pro") for _ in range(8)))
    assert len({user.team_id for user in made}) == 1
    assert (await new_user(team=name)).team_id == made[0].team_id
    with pytest.raises(InvalidField, match="tier"):
        await new_user(team=name, tier="free")


async def test_a_team_name_that_several_bear(own_store: None) -> None:
    name = uuid4().hex
    for _ in range(2):
        await fetch("INSERT INTO teams (name, tier) VALUES ($1, 'free')", name)
    with pytest.raises(InvalidField, match=name):
        await new_user(team=name)


async def test_the_tier_of_a_team(own_store: None) -> None:
    user = await new_user()
    await set_team(user.team_id, tier="pro")
    assert (await fetch("SELECT tier FROM teams WHERE id = $1", user.team_id))[0]["tier"] == "pro"
    with pytest.raises(InvalidField):
        await set_team(user.team_id, tier="gold")
    with pytest.raises(NotFound):
        await set_team(10**9, tier="pro")


@together("required", Scope)
def test_what_a_scope_grants(required: Scope) -> None:
    granting = {held for held in [*Scope, "webhooks:*"] if grants([held], required)}
    expected = {required.value}
    if required.value.startswith("databases:"):
        expected.add("databases:*")
    if required.value.startswith("webhooks:"):
        expected.add("webhooks:*")
    assert granting == expected
    assert not grants([], required)
