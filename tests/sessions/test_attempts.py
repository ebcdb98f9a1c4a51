"""How often one address tries to sign in, by all processes together."""

from datetime import timedelta

import pytest

from app.core.errors import RateLimitExceeded
from app.sessions.attempts import count_attempt, delete_old_attempts
from app.store.session import execute, fetch, transaction
from app.upkeep.sweep import SWEEPS
from tests.support.in_process import LoneApi

PAGE = {"Origin": "http://test", "Sec-Fetch-Site": "same-origin"}


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


async def test_a_request_to_sign_in_counts(shared: LoneApi) -> None:
    await execute("DELETE FROM sign_in_attempts")
    for _ in range(2):
        await shared.http.post("/api/v1/sign_ins/links", json={"token": "x"}, headers=PAGE)
        await shared.http.get("/api/v1/session")
    assert sum(row["attempts"] for row in await fetch("SELECT attempts FROM sign_in_attempts")) == 2
    assert delete_old_attempts in [rule.delete for rule in SWEEPS]
    await execute("UPDATE sign_in_attempts SET minute = minute - interval '10 minutes'")
    await shared.http.post("/api/v1/sign_ins/links", json={"token": "x"}, headers=PAGE)
    rule = next(rule for rule in SWEEPS if rule.delete is delete_old_attempts)
    async with transaction():
        assert await rule.delete(100, timedelta(0)) >= 1
    assert len(await fetch("SELECT 1 FROM sign_in_attempts")) == 1
