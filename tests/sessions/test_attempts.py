"""How often one address tries to sign in, by all processes together."""

from datetime import timedelta

import pytest
from litestar import Litestar

from app.accounts.sessions.attempts import PER_MINUTE, count_attempt, delete_old_attempts
from app.core.errors import RateLimitExceeded
from app.http.routes import handlers_of, signing_in
from app.http.state import AppState
from app.store.session import execute, fetch, transaction
from app.upkeep.sweep import SWEEPS
from tests.support.answers import error_of
from tests.support.in_process import LoneApi
from tests.support.people import follow, link_for

PAGE = {"Origin": "http://test", "Sec-Fetch-Site": "same-origin"}
WAYS = [
    path.removeprefix("/api/v1")
    for path, handler in handlers_of(Litestar([signing_in(AppState())], openapi_config=None))
    if "POST" in handler.http_methods
]
"""Every route that somebody who isn't known yet posts to."""


async def allowed(address: str, per_minute: int) -> bool:
    try:
        await count_attempt(address, per_minute)
    except RateLimitExceeded:
        return False
    return True


async def test_an_address_has_so_many_a_minute(shared: LoneApi) -> None:
    # The time of a transaction stands still, and so does the minute.
    async with transaction():
        assert [await allowed("192.0.2.1", 3) for _ in range(5)] == [True, True, True, False, False]
        assert await allowed("192.0.2.2", 3)
        rows = await fetch("SELECT attempts FROM sign_in_attempts WHERE network = '192.0.2.1'")
        assert [row["attempts"] for row in rows] == [3], "a refused one writes nothing"
        await execute("UPDATE sign_in_attempts SET minute = minute - interval '1 minute'")
        assert await allowed("192.0.2.1", 3)


@pytest.mark.parametrize(("other", "counted"), [("2001:db8::ffff", True), ("2001:db8:0:1::1", False)])
async def test_neighbours_in_a_network_of_one_subscriber_are_counted_together(
    shared: LoneApi, other: str, counted: bool
) -> None:
    async with transaction():
        await execute("DELETE FROM sign_in_attempts")
        assert await allowed("2001:db8::1", 1)
        assert await allowed(other, 1) is not counted


async def test_every_way_to_sign_in_counts(shared: LoneApi) -> None:
    """Also what only begins one, or shows what a token is for."""
    await execute("DELETE FROM sign_in_attempts")
    for path in WAYS:
        await shared.http.post(f"/api/v1{path}", json={"token": "x"}, headers=PAGE)
        await shared.http.get("/api/v1/session")
    assert sum(row["attempts"] for row in await fetch("SELECT attempts FROM sign_in_attempts")) == len(WAYS)


async def test_who_has_tried_too_often_is_refused_whatever_they_bring(shared: LoneApi) -> None:
    caller = await shared.caller()
    token = await link_for(shared.control_dsn, caller.user_id)
    # Of the next minute too, should it begin meanwhile.
    await execute(
        "INSERT INTO sign_in_attempts (network, minute, attempts) SELECT '127.0.0.1', m, $1"
        " FROM (SELECT date_trunc('minute', now()) + make_interval(mins => n) FROM generate_series(0, 1) n) AS soon (m)"
        " ON CONFLICT (network, minute) DO UPDATE SET attempts = excluded.attempts",
        PER_MINUTE,
    )
    for path in WAYS:
        answer = await shared.http.post(f"/api/v1{path}", json={"token": token}, headers=PAGE)
        error_of(answer, 429, "rate_limit_exceeded")
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
    await execute("DELETE FROM sign_in_attempts")
    assert (await follow(shared.http, token)).status_code == 201, "a refused attempt uses nothing up"


async def test_attempts_of_long_ago_are_forgotten(shared: LoneApi) -> None:
    await shared.http.post("/api/v1/sign_ins/links", json={"token": "x"}, headers=PAGE)
    assert delete_old_attempts in [rule.delete for rule in SWEEPS]
    await execute("UPDATE sign_in_attempts SET minute = minute - interval '10 minutes'")
    await shared.http.post("/api/v1/sign_ins/links", json={"token": "x"}, headers=PAGE)
    rule = next(rule for rule in SWEEPS if rule.delete is delete_old_attempts)
    async with transaction():
        assert await rule.delete(100, timedelta(0)) >= 1
    assert len(await fetch("SELECT 1 FROM sign_in_attempts")) == 1
