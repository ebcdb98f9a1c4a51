"""Authentication, controls, limit and usage cost a read one round trip to our own database, all together, and no
planning."""

import asyncio
from dataclasses import replace

import pytest

from app.auth.admission import admission
from app.auth.keys import KeyControls
from app.core.secrets import new_key_setting
from tests.limits.round_trips import counting
from tests.support.answers import body_of, data_of
from tests.support.in_process import LoneApi, lone_api

CONTROLS = KeyControls(
    requests_per_minute=100_000, monthly_quota=100_000, allowed_ips=("127.0.0.1",), inactive_ttl_days=9
)


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/me", 0),
        ("/database_types", 1),
        ("/databases", 1),
        ("/databases?limit=1&starting_after={uuid}", 1),
        ("/databases/{uuid}", 1),
    ],
)
async def test_a_read(control_dsn: str, path: str, own: int) -> None:
    """`own` are the queries of the operation itself."""
    keys = new_key_setting()
    async with lone_api(control_dsn, secret_keys=keys) as other:
        await other.add_host()
        creator = await other.caller(controls=CONTROLS)
        await creator.create()
        path = path.format(uuid=data_of(await creator.create(), 202)["uuid"])
    async with counting(control_dsn) as (dsn, counter), lone_api(dsn, secret_keys=keys) as api:
        caller = replace(creator, http=api.http)
        for _ in range(3):  # statements are prepared once a connection
            body_of(await caller.get(path))
        counter.count = 0
        for _ in range(10):
            body_of(await caller.get(path))
        assert counter.count == 10 * (1 + own)


async def test_requests_with_one_key_at_once_share_it(control_dsn: str) -> None:
    async with counting(control_dsn) as (dsn, counter), lone_api(dsn) as api:
        caller = await api.caller(controls=CONTROLS)
        body_of(await caller.get("/me"))
        counter.count = 0
        for answer in await asyncio.gather(*(caller.get("/me") for _ in range(50))):
            body_of(answer)
        assert counter.count < 25


async def test_admission_is_planned_once(lone: LoneApi) -> None:
    caller = await lone.caller()
    async with admission(lone.control_dsn) as admitting:
        for _ in range(9):
            await admitting.admit(f"Bearer {caller.api_key}", "127.0.0.1")
        (connection,) = admitting._keys._idle
        (row,) = await connection.fetch("SELECT sum(custom_plans) AS count FROM pg_prepared_statements")
    assert row["count"] == 0
