"""Requests a calendar month, counted in UTC."""

import asyncio
from datetime import UTC, datetime, timedelta

from app.auth.keys import KeyControls
from app.core.clock import utc_now
from app.store.session import fetch
from tests.limits.test_rate import let_pass, rate_headers
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi, lone_api


def next_month(now: datetime) -> datetime:
    first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (first + timedelta(days=32)).replace(day=1)


async def used(caller: Caller) -> int:
    (row,) = await fetch("SELECT month_count FROM api_key_usage WHERE key_id = $1", caller.key_id)
    count: int = row["month_count"]
    return count


async def test_exactly_so_many_pass(shared: LoneApi) -> None:
    caller = await shared.caller(controls=KeyControls(requests_per_minute=1000, monthly_quota=40))
    answers = await asyncio.gather(*(caller.get("/me") for _ in range(100)))
    assert sorted(answer.status_code for answer in answers) == [200] * 40 + [429] * 60
    assert data_of(await (await shared.caller()).get("/me"))["api_key"]["controls"]["monthly_quota"] is None


async def test_the_refusal_names_the_end_of_the_month(shared: LoneApi) -> None:
    caller = await shared.caller(controls=KeyControls(monthly_quota=1))
    body_of(await caller.get("/me"))
    before = utc_now()
    refused = await caller.get("/me")
    end, after = next_month(before), utc_now()
    assert error_of(refused, 429, "monthly_quota_exceeded")["details"] == {}
    least, most = ((end - at).total_seconds() for at in (after, before))
    assert least - 1 <= int(refused.headers["Retry-After"]) <= most + 1
    assert rate_headers(refused)[:2] == (120, 118)


async def test_it_turns_with_the_month(shared: LoneApi) -> None:
    caller = await shared.caller(controls=KeyControls(monthly_quota=2))
    for _ in range(2):
        body_of(await caller.get("/me"))
    error_of(await caller.get("/me"), 429, "monthly_quota_exceeded")
    await fetch("UPDATE api_key_usage SET month = (month - interval '1 month')::date WHERE key_id = $1", caller.key_id)
    for _ in range(2):
        body_of(await caller.get("/me"))
    error_of(await caller.get("/me"), 429, "monthly_quota_exceeded")
    (row,) = await fetch("SELECT month FROM api_key_usage WHERE key_id = $1", caller.key_id)
    assert row["month"] == datetime.now(UTC).date().replace(day=1)


async def test_a_new_minute_gives_no_new_month(shared: LoneApi) -> None:
    caller = await shared.caller(controls=KeyControls(requests_per_minute=2, monthly_quota=3))
    codes = []
    for _ in range(3):
        answers = [await caller.get("/me") for _ in range(3)]
        codes += [(answer.status_code, answer.json().get("error", {}).get("code")) for answer in answers]
        await let_pass(caller, 60)
    rate, month = (429, "rate_limit_exceeded"), (429, "monthly_quota_exceeded")
    ok = (200, None)
    assert codes == [ok, ok, rate, ok, month, rate, month, month, rate]


async def test_what_the_rate_refuses_is_not_charged(shared: LoneApi) -> None:
    caller = await shared.caller(controls=KeyControls(requests_per_minute=3, monthly_quota=100))
    await asyncio.gather(*(caller.get("/me") for _ in range(20)))
    assert await used(caller) == 3


async def test_raising_it_gives_room_at_once(shared: LoneApi) -> None:
    """What it refused is not charged; nor is what was charged forgotten when it is lowered."""
    caller = await shared.caller(controls=KeyControls(monthly_quota=2))
    codes = []
    for quota in (2, 3, 1, 4):
        await fetch("UPDATE api_keys SET monthly_quota = $2 WHERE id = $1", caller.key_id, quota)
        codes += [(await caller.get("/me")).status_code for _ in range(4)]
    assert codes == [200, 200, 429, 429, 200, 429, 429, 429, 429, 429, 429, 429, 200, 429, 429, 429]


async def test_it_outlives_the_process(control_dsn: str) -> None:
    async with lone_api(control_dsn) as api:
        caller = await api.caller(controls=KeyControls(monthly_quota=2))
        body_of(await caller.get("/me"))
    async with lone_api(control_dsn) as api:
        again = Caller(api.http, caller.api_key, caller.user_id, caller.team_id, caller.key_id)
        body_of(await again.get("/me"))
        error_of(await again.get("/me"), 429, "monthly_quota_exceeded")
