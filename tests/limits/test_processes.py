"""Limits and revocation hold over all API processes, also when one is killed."""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import httpx
import pytest_asyncio

from app.auth.keys import KeyControls, revoke_key
from app.local.processes import ChildProcess
from app.store.session import fetch
from tests.limits.test_rate import let_pass
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waiting import until

LIMIT = 37


@dataclass(frozen=True)
class Pair:
    """Two API processes on one database."""

    service: RunningService
    second: httpx.AsyncClient
    process: ChildProcess

    async def caller(self, controls: KeyControls) -> tuple[Caller, Caller]:
        """One key, at either process."""
        first = await self.service.caller(controls=controls)
        return first, Caller(self.second, first.api_key, first.user_id, first.team_id, first.key_id)


@pytest_asyncio.fixture(scope="module")
async def second(service: RunningService) -> AsyncIterator[tuple[httpx.AsyncClient, ChildProcess]]:
    async with service.another_api() as started:
        yield started


@pytest_asyncio.fixture
async def pair(service: RunningService, second: tuple[httpx.AsyncClient, ChildProcess]) -> AsyncIterator[Pair]:
    async with store(service.control_dsn):
        yield Pair(service, *second)


@pytest_asyncio.fixture
async def mortal_pair(service: RunningService) -> AsyncIterator[Pair]:
    """Of which the second is the test's own."""
    async with service.another_api() as started, store(service.control_dsn):
        yield Pair(service, *started)


async def test_no_two_share_a_port(service: RunningService, second: tuple[httpx.AsyncClient, ChildProcess]) -> None:
    """Each would answer some of the other's requests, and two services by mistake those of a stranger."""
    environ = service.environ(API_PORT=str(second[0].base_url.port))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.http"), env=environ, stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    assert process.returncode == 1
    assert f"can't listen on 127.0.0.1:{second[0].base_url.port}: " in said.decode()


async def burst(callers: Sequence[Caller], count: int) -> list[int]:
    """The statuses of so many requests at once, in turn from each caller; 0 for an answer that was lost."""
    answers = await asyncio.gather(
        *(callers[number % len(callers)].get("/me") for number in range(count)), return_exceptions=True
    )
    lost = [answer for answer in answers if isinstance(answer, BaseException)]
    assert all(isinstance(fault, httpx.TransportError) for fault in lost), lost
    return [answer.status_code if isinstance(answer, httpx.Response) else 0 for answer in answers]


async def test_exactly_so_many_pass(pair: Pair) -> None:
    either = await pair.caller(KeyControls(requests_per_minute=LIMIT))
    for _ in range(3):
        statuses = await burst(either, 120)
        assert (statuses.count(200), statuses.count(429)) == (LIMIT, 120 - LIMIT)
        await let_pass(either[0], 60)


async def test_several_keys_at_once(pair: Pair) -> None:
    keys = [await pair.caller(KeyControls(requests_per_minute=limit)) for limit in (1, 10, LIMIT)]
    statuses = await asyncio.gather(*(burst(either, 60) for either in keys))
    assert [each.count(200) for each in statuses] == [1, 10, LIMIT]


async def test_a_month_is_counted_over_both(pair: Pair) -> None:
    either = await pair.caller(KeyControls(requests_per_minute=1000, monthly_quota=LIMIT))
    assert (await burst(either, 100)).count(200) == LIMIT


async def test_one_is_killed_between(mortal_pair: Pair) -> None:
    either = await mortal_pair.caller(KeyControls(requests_per_minute=LIMIT))
    assert (await burst(either, 20)).count(200) == 20
    await mortal_pair.process.kill()
    assert (await burst(either[:1], 60)).count(200) == LIMIT - 20


async def test_one_is_killed_amid(mortal_pair: Pair) -> None:
    either = await mortal_pair.caller(KeyControls(requests_per_minute=LIMIT))
    running = asyncio.create_task(burst(either, 120))
    await until(lambda: _let_in(either[0]))
    await mortal_pair.process.kill()
    statuses = await running
    statuses += await burst(either[:1], 60)
    # What the killed process let in and could no longer answer is counted.
    assert statuses.count(200) <= LIMIT <= statuses.count(200) + statuses.count(0)
    assert (await burst(either[:1], 10)).count(200) == 0


async def _let_in(caller: Caller) -> bool:
    return bool(await fetch("SELECT 1 FROM api_key_usage WHERE key_id = $1 AND window_count > 0", caller.key_id))


async def test_revocation_and_a_changed_limit_act_at_once(pair: Pair) -> None:
    either = await pair.caller(KeyControls(requests_per_minute=1000))
    for caller in either:
        body_of(await caller.get("/me"))
    used = data_of(await either[1].get("/me"))["api_key"]["last_used_at"]
    assert used is not None
    await revoke_key(either[0].key_id)
    for caller in either:
        error_of(await caller.get("/me"), 403, "invalid_api_key")


async def test_revocation_amid_many_requests(pair: Pair) -> None:
    """Not one request that was sent after the revocation passes, at either process, however busy they are."""
    either = await pair.caller(KeyControls(requests_per_minute=100_000))
    stop = asyncio.Event()

    passed: Counter[Caller] = Counter()

    async def keep_asking(caller: Caller) -> None:
        while not stop.is_set():
            passed[caller] += (await caller.get("/me")).status_code == 200

    busy = [asyncio.create_task(keep_asking(caller)) for caller in either * 8]
    await until(lambda: all(passed[caller] > 8 for caller in either))
    await revoke_key(either[0].key_id)
    statuses = await burst(either, 40)
    stop.set()
    await asyncio.gather(*busy)
    assert statuses == [403] * 40
