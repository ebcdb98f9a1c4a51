"""Keys of several people mint, change, replace and revoke each other at random, and are compared with a model: no key
ever does what nobody gave its user in one."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio

from app.accounts import key_service
from app.accounts.key_schemas import CreateKey, KeyChange, KeyControlsChange
from app.auth.admission import Admission, admission
from app.auth.authority import Authority
from app.auth.client_address import parse_address
from app.auth.keys import insert_key
from app.auth.principal import Principal
from app.auth.users import create_user
from app.core.errors import ExceedsOwnKey, InvalidApiKey, InvalidField, IpNotAllowed, NotFound
from app.store.session import execute, transaction
from tests.auth import key_model
from tests.auth.key_model import ADDRESSES, Limits, Model, ModelKey, World
from tests.support.answers import data_of
from tests.support.in_process import LoneApi

STEPS_OF_A_CHAIN = 30
UNLIMITED = {
    "scopes": list(key_model.SCOPES),
    "requests_per_minute": key_model.RATES[0],
    "monthly_quota": None,
    "allowed_ips": [],
    "inactive_ttl_days": None,
    "expires_at": None,
    "team_id": None,
    "databases": None,
}


@pytest_asyncio.fixture
async def admitting(lone: LoneApi) -> AsyncIterator[Admission]:
    async with admission(lone.control_dsn) as made:
        yield made


class Chains:
    """People with keys, and what becomes of those."""

    def __init__(self, admitting: Admission, world: World, dice: random.Random) -> None:
        self._admitting, self._dice, self.model = admitting, dice, Model(world)
        self.done = {True: 0, False: 0}

    async def give(self, user: int, limits: Limits) -> None:
        """As an operator does."""
        made = await insert_key(user, "given", Authority(**limits))
        self.model.keys[made.id] = ModelKey(made.id, user, limits, [made.api_key])
        self.model.given.append((user, limits))

    async def step(self) -> None:
        dice, keys = self._dice, list(self.model.keys.values())
        by = dice.choice([key for key in keys if not key.revoked])
        target = dice.choice([key for key in keys if key.user == by.user] if dice.random() < 0.9 else keys)
        caller = await self.principal(by)
        action = dice.choices((self._mint, self._change, self._rotate, self._revoke), weights=(4, 5, 2, 1))[0]
        await action(by, target, caller)

    async def check(self, key: ModelKey) -> None:
        """It is let in, and from where, as the model says; and nobody has to answer for having given more."""
        assert self.model.is_given(key), key
        for text in key.texts:
            for address in self._dice.sample(ADDRESSES, 3):
                await self._check_text(key, text, address)

    async def principal(self, key: ModelKey) -> Principal:
        """Of one of its texts, from where it may come."""
        address = self._dice.choice(key_model.addresses(key.limits["allowed_ips"]))
        text = self._dice.choice(key.texts)
        return (await self._admitting.admit(f"Bearer {text}", parse_address(address))).principal

    async def _check_text(self, key: ModelKey, text: str, address: str) -> None:
        limits = key.limits
        try:
            seen = (await self._admitting.admit(f"Bearer {text}", parse_address(address))).principal
        except InvalidApiKey:
            assert key.revoked
            return
        except IpNotAllowed:
            assert address not in key_model.addresses(limits["allowed_ips"])
            return
        assert not key.revoked
        assert address in key_model.addresses(limits["allowed_ips"])
        teams = [limits["team_id"]] if limits["team_id"] else self.model.world.teams
        assert (seen.scopes, seen.databases, seen.team_ids) == (limits["scopes"], limits["databases"], teams)
        assert (seen.requests_per_minute, seen.monthly_quota) == (
            limits["requests_per_minute"],
            limits["monthly_quota"],
        )

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
                    await self._admitting.admit(f"Bearer {text}", parse_address(ADDRESSES[0]))
        await self.check(target)

    async def _revoke(self, by: ModelKey, target: ModelKey, caller: Principal) -> None:
        minted = self._dice.random() < 0.5

        async def revoke() -> Any:
            return await key_service.revoke(caller, target.id, minted=minted)

        if await self._compare(self.model.may_revoke(by, target), revoke) is not None:
            self.model.revoke(target, minted=minted)
            for key in self.model.keys.values():
                if key.revoked:
                    await self.check(key)

    async def _compare(self, expected: bool, act: Callable[[], Awaitable[Any]]) -> Any:
        self.done[expected] += 1
        if expected:
            async with transaction():
                return await act()
        with pytest.raises((ExceedsOwnKey, InvalidField, NotFound)):
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
        return {**present, **{name: drawn[name] for name in chosen}}


def _fields(limits: Limits) -> dict[str, Any]:
    controls = KeyControlsChange(
        requests_per_minute=limits["requests_per_minute"],
        monthly_quota=limits["monthly_quota"],
        allowed_ip_list=limits["allowed_ips"],
        inactive_ttl_days=limits["inactive_ttl_days"],
    )
    given = {name: limits[name] for name in ("team_id", "databases", "expires_at")}
    return {**given, "controls": controls}


@pytest_asyncio.fixture
async def world(lone: LoneApi) -> World:
    """Two teams with two databases each."""
    await lone.add_host()
    callers = [await lone.caller() for _ in range(2)]
    databases = {}
    for caller in (*callers, *callers):
        databases[UUID(data_of(await caller.create("db"), 202)["uuid"])] = caller.team_id
    return World(sorted(caller.team_id for caller in callers), databases)


async def _run(admitting: Admission, world: World, seed: int) -> dict[bool, int]:
    """One chain of changes by the keys of two people who are in both teams."""
    made = Chains(admitting, world, random.Random(seed))
    # Each has what the other lacks, and manages what the other has made: together they would be more than either.
    near = {"allowed_ips": ["10.0.0.0/8"], "requests_per_minute": key_model.RATES[1]}
    few = {"scopes": ["databases:read", "keys:write"], "monthly_quota": key_model.MONTHS[1]}
    for number in range(2):
        user = await create_user(email=f"{uuid4().hex}@example.com", name=str(number))
        await execute("DELETE FROM memberships WHERE user_id = $1", user.user_id)
        for team in world.teams:
            await execute("INSERT INTO memberships (user_id, team_id) VALUES ($1, $2)", user.user_id, team)
        await made.give(user.user_id, {**UNLIMITED, **near})
        await made.give(user.user_id, {**UNLIMITED, **few})
    for _ in range(STEPS_OF_A_CHAIN):
        if all(key.revoked for key in made.model.keys.values()):
            break
        await made.step()
    for key in made.model.keys.values():
        await made.check(key)
    return made.done


async def test_no_key_gets_what_nobody_gave(admitting: Admission, world: World) -> None:
    done = {True: 0, False: 0}
    for seed in range(20):
        for outcome, count in (await _run(admitting, world, seed)).items():
            done[outcome] += count
    assert min(done.values()) > 40, "both refusals and changes were met"


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 11_000, 200))
async def test_ten_thousand_chains(admitting: Admission, world: World, first: int) -> None:
    for seed in range(first, first + 200):
        await _run(admitting, world, seed)
