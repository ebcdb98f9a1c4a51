"""Many keys at the same moment: they share statements, count apart, and never wait for each other in a circle."""

import asyncio
import contextlib
import random

import pytest

from app.auth.admission import Admission, admission
from app.auth.keys import KeyControls, hash_key
from app.core.errors import AppError, InvalidApiKey
from app.store.connections import is_lost
from app.store.session import fetch, transaction
from tests.limits.round_trips import counting
from tests.support.in_process import lone_api
from tests.support.store import store
from tests.support.waiting import until

ADDRESS = "127.0.0.1"
KEYS, REQUESTS, LIMIT = 12, 40, 25


async def _keys(dsn: str, controls: KeyControls) -> list[str]:
    async with lone_api(dsn) as api:
        return [(await api.caller(controls=controls)).api_key for _ in range(KEYS)]


async def _outcome(of: Admission, key: str) -> str:
    try:
        await of.admit(f"Bearer {key}", ADDRESS)
    except AppError as refusal:
        return refusal.code
    return "in"


async def test_no_two_processes_wait_for_each_other(control_dsn: str) -> None:
    """Both have taken some keys' rows when one row is held up: with locks taken as they come, this is a deadlock."""
    keys = await _keys(control_dsn, KeyControls(requests_per_minute=100_000))
    async with admission(control_dsn) as one, admission(control_dsn) as other, store(control_dsn):
        for held in keys:
            asked = [(of, key) for of in (one, other) for key in random.Random(held).sample(keys, KEYS)]
            async with transaction():
                await fetch(
                    "SELECT 1 FROM api_key_usage c JOIN api_keys k ON k.id = c.key_id"
                    " WHERE k.hash = $1 FOR UPDATE OF c",
                    hash_key(held),
                )
                asking = [asyncio.create_task(_let_in(of, key)) for of, key in asked]
                await until(_some_wait)
            assert set(await asyncio.gather(*asking)) == {"in"}


async def _let_in(of: Admission, key: str) -> str:
    """Asks until it is answered: a statement waits ten seconds for the row, and a machine may stall for longer."""
    while True:
        with contextlib.suppress(TimeoutError):
            return await _outcome(of, key)


async def _some_wait() -> bool:
    """For the row that is held, and everything that shares a statement with it."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return len(await fetch(waiting)) == 2


async def test_exactly_so_many_of_each_key_pass_over_two_processes(control_dsn: str) -> None:
    keys = await _keys(control_dsn, KeyControls(requests_per_minute=LIMIT))
    async with admission(control_dsn) as one, admission(control_dsn) as other:
        asked = [(of, key) for key in keys for of in (one, other) for _ in range(REQUESTS // 2)]
        random.Random(7).shuffle(asked)
        outcomes = await asyncio.gather(*(_outcome(of, key) for of, key in asked))
    for mine in keys:
        of_key = [outcome for (_, key), outcome in zip(asked, outcomes, strict=True) if key == mine]
        assert sorted(of_key) == ["in"] * LIMIT + ["rate_limit_exceeded"] * (REQUESTS - LIMIT)


async def test_they_share_statements(control_dsn: str) -> None:
    keys = await _keys(control_dsn, KeyControls())
    async with counting(control_dsn) as (dsn, counter), admission(dsn) as asking:
        await _outcome(asking, keys[0])
        await asyncio.gather(*(_outcome(asking, key) for key in keys))
        counter.count = 0
        assert await asyncio.gather(*(_outcome(asking, key) for key in keys)) == ["in"] * KEYS
        assert counter.count <= 2


async def test_an_unknown_key_among_them_is_refused_alone(control_dsn: str) -> None:
    keys = await _keys(control_dsn, KeyControls())
    async with admission(control_dsn) as asking:
        with pytest.raises(InvalidApiKey):
            await asking.admit("Bearer pk_live_unknown", ADDRESS)
        outcomes = await asyncio.gather(*(_outcome(asking, key) for key in [*keys[:2], "pk_live_unknown", keys[2]]))
    assert outcomes == ["in", "in", "invalid_api_key", "in"]


async def test_an_idle_connection_that_breaks_costs_no_request(control_dsn: str) -> None:
    """As when our own database has restarted since the last one."""
    key, *_ = await _keys(control_dsn, KeyControls())
    async with admission(control_dsn) as asking, store(control_dsn):
        assert await _outcome(asking, key) == "in"
        (idle,) = asking._keys._idle
        await fetch("SELECT pg_terminate_backend($1)", idle.get_server_pid())
        await until(lambda: is_lost(idle))
        assert await _outcome(asking, key) == "in"
