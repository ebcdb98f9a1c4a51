"""Several people and their keys mint, change, replace and revoke keys, invite, accept, demote, remove and leave at
random, and are compared with a model: no key and no person ever does what nobody gave them."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio

from app.accounts import invitation_service, key_service, member_service
from app.accounts.key_schemas import CreateKey, KeyChange, KeyControlsChange
from app.auth.admission import Admission, admission
from app.auth.authority import Authority
from app.auth.keys import insert_key
from app.auth.principal import Principal
from app.auth.roles import Role, roles_that_may
from app.auth.scopes import Scope, grants
from app.auth.users import create_user
from app.core.errors import (
    AlreadyAMember,
    ExceedsOwnKey,
    InsufficientRole,
    InvalidApiKey,
    InvalidField,
    InvitationEnded,
    InvitationForAnother,
    IpNotAllowed,
    LastOwner,
    NotAMember,
    NotFound,
)
from app.store.session import execute, fetch, transaction
from tests.auth import key_model
from tests.auth.key_model import ADDRESSES, ROLES, Limits, Model, ModelInvitation, ModelKey, World
from tests.support.answers import data_of
from tests.support.in_process import LoneApi

STEPS_OF_A_CHAIN = 24
UNLIMITED: Limits = {
    "scopes": list(key_model.SCOPES),
    "requests_per_minute": key_model.RATES[0],
    "monthly_quota": None,
    "allowed_ips": [],
    "inactive_ttl_days": None,
    "expires_at": None,
    "team_id": None,
    "databases": None,
    "ended_teams": [],
}
# Each has what the other lacks, and manages what the other has made: together they would be more than either.
NEAR = {**UNLIMITED, "allowed_ips": ["10.0.0.0/8"], "requests_per_minute": key_model.RATES[1]}
FEW = {**UNLIMITED, "scopes": ["databases:read", "keys:write"], "monthly_quota": key_model.MONTHS[1]}
REFUSALS = (
    AlreadyAMember,
    ExceedsOwnKey,
    InsufficientRole,
    InvalidField,
    InvitationEnded,
    InvitationForAnother,
    LastOwner,
    NotAMember,
    NotFound,
)
TRIED = ("databases:read", "databases:write", "keys:write", "teams:write")
LIMITS = (10**6, 10**6)


@pytest_asyncio.fixture
async def admitting(lone: LoneApi) -> AsyncIterator[Admission]:
    async with admission(lone.control_dsn) as made:
        yield made


class Chains:
    """People with keys, and what becomes of both."""

    def __init__(self, admitting: Admission, world: World, dice: random.Random) -> None:
        self._admitting, self._dice, self.model = admitting, dice, Model(world)
        self.done = {True: 0, False: 0}
        self.addresses: dict[int, str] = {}
        """Of each person, by which they are invited."""
        self._actions: dict[Callable[[ModelKey, ModelKey, Principal], Awaitable[None]], int] = {
            self._mint: 5,
            self._change: 6,
            self._rotate: 2,
            self._revoke: 1,
            self._end: 2,
            self._invite: 4,
            self._accept: 4,
            self._set_role: 4,
            self._remove: 2,
        }

    async def give(self, user: int, limits: Limits) -> None:
        """As an operator does."""
        made = await insert_key(user, "given", Authority(**limits))
        self.model.keys[made.id] = ModelKey(made.id, user, _copy(limits), [made.api_key])
        self.model.given.append((user, _copy(limits)))

    async def step(self) -> None:
        dice, keys = self._dice, list(self.model.keys.values())
        person = dice.choice(list(self.model.places))
        usable = [key for key in keys if key.user == person and self.model.admits(key)]
        if not usable or dice.random() < 0.03:
            # Who has come back, or lost all keys, is given new ones.
            await self.give(person, dice.choice((NEAR, FEW)))
            return
        by = dice.choice(usable)
        target = dice.choice([key for key in keys if key.user == by.user] if dice.random() < 0.8 else keys)
        action = dice.choices(list(self._actions), weights=list(self._actions.values()))[0]
        await action(by, target, await self.principal(by))

    async def check(self, key: ModelKey) -> None:
        """It is let in, and from where, as the model says; and nobody has to answer for having given more."""
        assert self.model.is_given(key), key
        for text in key.texts:
            await self._check_text(key, text, self._dice.choice(ADDRESSES))

    async def check_places(self) -> None:
        """Who is in which team, and that each has an owner."""
        rows = await fetch(
            "SELECT user_id, team_id, role FROM memberships WHERE team_id = any($1::bigint[]) ORDER BY id",
            self.model.world.teams,
        )
        expected = {(user, team): role for user, places in self.model.places.items() for team, role in places.items()}
        assert {(row["user_id"], row["team_id"]): row["role"] for row in rows} == expected
        assert {row["team_id"] for row in rows if row["role"] == "owner"} == set(self.model.world.teams)

    async def principal(self, key: ModelKey) -> Principal:
        """Of one of its texts, from where it may come."""
        address = self._dice.choice(key_model.addresses(key.limits["allowed_ips"]))
        text = self._dice.choice(key.texts)
        return (await self._admitting.admit(f"Bearer {text}", address)).principal

    async def _check_text(self, key: ModelKey, text: str, address: str) -> None:
        limits = key.limits
        try:
            seen = (await self._admitting.admit(f"Bearer {text}", address)).principal
        except InvalidApiKey:
            assert key.revoked
            return
        except IpNotAllowed:
            assert address not in key_model.addresses(limits["allowed_ips"])
            return
        except NotAMember:
            assert not self.model.admits(key)
            return
        assert self.model.admits(key), key
        assert address in key_model.addresses(limits["allowed_ips"])
        reach = self.model.reach(key)
        assert (seen.scopes, seen.databases, seen.team_ids) == (limits["scopes"], limits["databases"], list(reach))
        assert seen.team_roles == list(reach.values())
        assert (seen.requests_per_minute, seen.monthly_quota) == (
            limits["requests_per_minute"],
            limits["monthly_quota"],
        )
        for scope in TRIED:
            assert _may_do(seen, Scope(scope)) == self.model.may_do(key, scope), (scope, key)

    async def _mint(self, by: ModelKey, _: ModelKey, caller: Principal) -> None:
        wanted = self._some(by.limits)
        asked = CreateKey(name="made", permissions=wanted["scopes"], **_fields(wanted))

        async def mint() -> Any:
            return await key_service.mint(caller, asked, most=10**6)

        made = await self._compare(self.model.may_mint(by, wanted), mint)
        if made is not None:
            record, text = made
            child = self.model.keys[record.id] = ModelKey(record.id, by.user, wanted, [text], minted_by=by.id)
            await self.check(child)

    async def _change(self, by: ModelKey, target: ModelKey, caller: Principal) -> None:
        wanted = self._some(target.limits)
        asked = KeyChange(permissions=wanted["scopes"], **_fields(wanted))

        async def change() -> Any:
            return await key_service.change(caller, target.id, asked)

        if await self._compare(self.model.may_change(by, target, wanted), change) is not None:
            target.limits = wanted
        await self.check(target)

    async def _rotate(self, by: ModelKey, target: ModelKey, caller: Principal) -> None:
        overlap = self._dice.choice((0, 3600))

        async def rotate() -> Any:
            return await key_service.rotate(caller, target.id, overlap)

        made = await self._compare(self.model.may_rotate(by, target), rotate)
        if made is not None:
            ended = [*target.texts[:-1], *([] if overlap else target.texts[-1:])]
            target.texts = [*(target.texts[-1:] if overlap else []), made[1]]
            for text in ended:
                with pytest.raises(InvalidApiKey):
                    await self._admitting.admit(f"Bearer {text}", ADDRESSES[0])
        await self.check(target)

    async def _revoke(self, by: ModelKey, target: ModelKey, caller: Principal) -> None:
        if target.user != by.user:
            await self._end(by, target, caller)
            return
        minted = self._dice.random() < 0.5

        async def revoke() -> Any:
            return await key_service.revoke(caller, target.id, minted=minted)

        if await self._compare(self.model.manages(by, target), revoke) is not None:
            self.model.revoke(target, minted=minted)
            await self.check(target)

    async def _end(self, by: ModelKey, _: ModelKey, caller: Principal) -> None:
        """Somebody else's key, as an admin."""
        others = [key for key in self.model.keys.values() if key.user != by.user]
        target, minted = self._dice.choice(others), self._dice.random() < 0.5

        async def end() -> Any:
            return await key_service.revoke(caller, target.id, minted=minted)

        if await self._compare(bool(self.model.administers(by, target)), end) is not None:
            self.model.end(by, target, minted=minted)
        await self.check(target)

    async def _invite(self, by: ModelKey, _: ModelKey, caller: Principal) -> None:
        team, role = self._dice.choice(self.model.world.teams), self._dice.choice(ROLES)
        person = self._dice.choice((None, *self.addresses))
        email = None if person is None else self.addresses[person]

        async def invite() -> Any:
            return await invitation_service.invite(caller, team, Role(role), seconds=3600, most=10**6, email=email)

        made = await self._compare(self.model.may_invite(by, team, role), invite)
        if made is not None:
            self.model.invitations.append(ModelInvitation(made[1], team, role, by.user, only_for=person))

    async def _accept(self, by: ModelKey, _: ModelKey, caller: Principal) -> None:
        if not self.model.invitations:
            return
        invitation = self._dice.choice(self.model.invitations[-4:])

        async def accept() -> Any:
            return await invitation_service.accept(caller, invitation.token, LIMITS)

        if await self._compare(self.model.may_accept(by, invitation), accept) is not None:
            invitation.state = "accepted"
            self.model.places[by.user][invitation.team] = invitation.role
        await self.check(by)

    async def _set_role(self, by: ModelKey, _: ModelKey, caller: Principal) -> None:
        team, role = self._dice.choice(self.model.world.teams), self._dice.choice(ROLES)
        user = self._dice.choice(list(self.model.places))

        async def change() -> Any:
            return await member_service.change(caller, team, user, Role(role))

        if await self._compare(self.model.may_set_role(by, team, user, role), change) is not None:
            self.model.set_role(team, user, role)
        await self._check_one_of(user)

    async def _remove(self, by: ModelKey, _: ModelKey, caller: Principal) -> None:
        team, user = self._dice.choice(self.model.world.teams), self._dice.choice(list(self.model.places))

        async def remove() -> Any:
            return await member_service.remove(caller, team, user)

        if await self._compare(self.model.may_remove(by, team, user), remove) is not None:
            self.model.remove(team, user)
        await self._check_one_of(user)

    async def _check_one_of(self, user: int) -> None:
        keys = [key for key in self.model.keys.values() if key.user == user]
        await self.check(self._dice.choice(keys))

    async def _compare(self, expected: bool, act: Callable[[], Awaitable[Any]]) -> Any:
        self.done[expected] += 1
        if expected:
            async with transaction():
                return await act()
        with pytest.raises(REFUSALS):
            async with transaction():
                await act()
        return None

    def _some(self, present: Limits) -> Limits:
        """These limits with some of them drawn anew."""
        dice, world = self._dice, self.model.world
        drawn: Limits = {
            "scopes": dice.sample(key_model.SCOPES, dice.randint(1, len(key_model.SCOPES))),
            "requests_per_minute": dice.choice(key_model.RATES),
            "monthly_quota": dice.choice(key_model.MONTHS),
            "allowed_ips": dice.choice(key_model.NETWORKS),
            "inactive_ttl_days": dice.choice(key_model.IDLE_DAYS),
            "expires_at": dice.choice(key_model.ENDS),
            "team_id": dice.choice((None, *world.teams)),
            "databases": dice.choice((None, dice.sample(sorted(world.databases), dice.randint(1, 3)))),
        }
        chosen = dice.sample(sorted(drawn), dice.randint(0, 3))
        return {**_copy(present), **{name: drawn[name] for name in chosen}}


def _copy(limits: Limits) -> Limits:
    return {**limits, "ended_teams": list(limits["ended_teams"])}


def _may_do(caller: Principal, scope: Scope) -> set[int]:
    """The teams in which the routes of this scope serve that caller."""
    if not grants(caller.scopes, scope) or not caller.team_ids:
        return set()
    return set(caller.limited_to(roles_that_may([scope])).team_ids)


def _fields(limits: Limits) -> dict[str, Any]:
    controls = KeyControlsChange(
        requests_per_minute=limits["requests_per_minute"],
        monthly_quota=limits["monthly_quota"],
        allowed_ip_list=limits["allowed_ips"],
        inactive_ttl_days=limits["inactive_ttl_days"],
    )
    given = {name: limits[name] for name in ("team_id", "databases", "expires_at")}
    return {**given, "controls": controls}


async def new_world(lone: LoneApi) -> World:
    """Two teams with two databases each."""
    callers = [await lone.caller() for _ in range(2)]
    databases = {}
    for caller in (*callers, *callers):
        databases[UUID(data_of(await caller.create("db"), 202)["uuid"])] = caller.team_id
    return World(sorted(caller.team_id for caller in callers), databases)


async def _run(admitting: Admission, world: World, seed: int) -> dict[bool, int]:
    """One chain of what three people and their keys do. At first each of the two teams has an owner and an admin."""
    made = Chains(admitting, world, random.Random(seed))
    one, other = world.teams
    await execute("DELETE FROM memberships WHERE team_id = any($1::bigint[])", world.teams)
    for number, places in enumerate(({one: "owner", other: "member"}, {one: "admin", other: "owner"}, {one: "viewer"})):
        email = f"{uuid4().hex}@example.com"
        user = (await create_user(email=email, name=str(number))).user_id
        made.addresses[user] = email
        await execute("DELETE FROM memberships WHERE user_id = $1", user)
        for team, role in places.items():
            await execute("INSERT INTO memberships (user_id, team_id, role) VALUES ($1, $2, $3)", user, team, role)
        made.model.places[user] = dict(places)
        await made.give(user, NEAR)
        await made.give(user, FEW)
    for _ in range(STEPS_OF_A_CHAIN):
        await made.step()
    for key in made.model.keys.values():
        await made.check(key)
    await made.check_places()
    return made.done


async def test_nobody_gets_what_nobody_gave(lone: LoneApi, admitting: Admission) -> None:
    await lone.add_host()
    world = await new_world(lone)
    done = {True: 0, False: 0}
    for seed in range(30):
        for outcome, count in (await _run(admitting, world, seed)).items():
            done[outcome] += count
    assert min(done.values()) > 60, "both refusals and changes were met"


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 11_000, 500))
async def test_ten_thousand_chains(lone: LoneApi, admitting: Admission, first: int) -> None:
    """In each of these runs 500, eight at a time, in teams of their own."""
    await lone.add_host()
    worlds = [await new_world(lone) for _ in range(8)]
    seeds = iter(range(first, first + 500))

    async def run_next(world: World) -> None:
        for seed in seeds:
            await _run(admitting, world, seed)

    await asyncio.gather(*(run_next(world) for world in worlds))
