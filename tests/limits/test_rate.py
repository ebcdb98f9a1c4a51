"""Requests a minute: a window begins with its first request, lasts 60 s, and lets exactly N through."""

import asyncio
import re
from datetime import datetime

import httpx
import pytest

from app.auth.keys import KeyControls
from app.store.session import fetch
from tests.support.answers import body_of, error_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.moves import make_active

NOWHERE = "/databases/8a3f7c1e-52d4-4b0e-9a67-1c2d3e4f5a6b"


def rate_headers(answer: httpx.Response) -> tuple[int, int, int]:
    """Limit, remaining requests, and seconds to the next window."""
    policy = re.fullmatch(r'"permin";q=(\d+);w=60', answer.headers["RateLimit-Policy"])
    left = re.fullmatch(r'"permin";r=(\d+);t=(\d+)', answer.headers["RateLimit"])
    assert policy
    assert left
    return int(policy[1]), int(left[1]), int(left[2])


async def let_pass(caller: Caller, seconds: float) -> None:
    """Moves the key's window into the past, as if so much time had passed."""
    await fetch(
        "UPDATE api_key_usage SET window_start = window_start - make_interval(secs => $2) WHERE key_id = $1",
        caller.key_id,
        seconds,
    )


async def window_start(caller: Caller) -> datetime:
    (row,) = await fetch("SELECT window_start FROM api_key_usage WHERE key_id = $1", caller.key_id)
    began: datetime = row["window_start"]
    return began


async def seconds_left(caller: Caller) -> int:
    left = "extract(epoch FROM window_start + interval '60 s' - clock_timestamp())"
    (row,) = await fetch(f"SELECT ceil({left})::int AS left FROM api_key_usage WHERE key_id = $1", caller.key_id)
    return int(row["left"])


async def asked_in_the_window(caller: Caller) -> httpx.Response:
    """The answer, after checking that it tells the seconds left of the window that there was before."""
    before = await seconds_left(caller)
    answer = await caller.get("/me")
    assert await seconds_left(caller) <= rate_headers(answer)[2] <= before
    return answer


async def test_the_default_is_120(shared: LoneApi) -> None:
    caller = await shared.caller(controls=KeyControls())
    assert rate_headers(await caller.get("/me")) == (120, 119, 60)


async def test_exactly_so_many_pass(shared: LoneApi) -> None:
    caller = await shared.caller(controls=KeyControls(requests_per_minute=5))
    for remaining in (4, 3, 2, 1, 0):
        answer = await caller.get("/me")
        body_of(answer)
        assert rate_headers(answer)[:2] == (5, remaining)
    for _ in range(3):
        error_of(await caller.get("/me"), 429, "rate_limit_exceeded")


async def test_the_shape_of_the_refusal(shared: LoneApi) -> None:
    caller = await shared.caller(controls=KeyControls(requests_per_minute=1))
    await caller.get("/me")
    refused = await asked_in_the_window(caller)
    error = error_of(refused, 429, "rate_limit_exceeded")
    assert error["details"] == {}
    assert "API key" in error["message"]
    limit, remaining, resets_in = rate_headers(refused)
    assert (limit, remaining) == (1, 0)
    assert refused.headers["Retry-After"] == str(resets_in)


async def test_a_window_begins_with_its_first_request(shared: LoneApi) -> None:
    caller = await shared.caller(controls=KeyControls(requests_per_minute=2))
    await caller.get("/me")
    await let_pass(caller, 5)
    assert rate_headers(await asked_in_the_window(caller))[:2] == (2, 0)
    await let_pass(caller, 5)
    began = await window_start(caller)
    refused = await asked_in_the_window(caller)
    error_of(refused, 429, "rate_limit_exceeded")
    assert rate_headers(refused)[:2] == (2, 0)
    # To be refused begins no window, and lengthens none.
    assert await window_start(caller) == began
    await let_pass(caller, 50)
    assert rate_headers(await caller.get("/me")) == (2, 1, 60)


async def test_many_at_once_in_one_process(shared: LoneApi) -> None:
    caller = await shared.caller(controls=KeyControls(requests_per_minute=50))
    for _ in range(3):
        answers = await asyncio.gather(*(caller.get("/me") for _ in range(120)))
        passed = [answer for answer in answers if answer.status_code == 200]
        assert sorted(rate_headers(answer)[1] for answer in passed) == list(range(50))
        for answer in answers:
            if answer not in passed:
                error_of(answer, 429, "rate_limit_exceeded")
        await let_pass(caller, 60)


async def test_addresses_that_are_refused_amid_many_that_are_not(shared: LoneApi) -> None:
    caller = await shared.caller(controls=KeyControls(requests_per_minute=20, allowed_ips=("203.0.113.7",)))
    addresses = ["203.0.113.8", "203.0.113.7"] * 30
    answers = await asyncio.gather(*(caller.get("/me", headers={"X-Forwarded-For": address}) for address in addresses))
    for address, answer in zip(addresses, answers, strict=True):
        assert (answer.status_code == 403) == (address == "203.0.113.8")
    assert [answer.status_code for answer in answers].count(200) == 20


async def test_requests_whose_clients_hang_up_count_too(shared: LoneApi) -> None:
    caller = await shared.caller(controls=KeyControls(requests_per_minute=10))
    asking = [asyncio.create_task(caller.get("/me")) for _ in range(8)]
    await asyncio.sleep(0)
    for task in asking[:4]:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    answers = await asyncio.gather(*(caller.get("/me") for _ in range(30)))
    (row,) = await fetch("SELECT window_count FROM api_key_usage WHERE key_id = $1", caller.key_id)
    counted_before = row["window_count"] - 30
    assert 4 <= counted_before <= 8
    assert [answer.status_code for answer in answers].count(200) == 10 - counted_before


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/me", b"", 200),
        ("GET", "/database_types", b"", 200),
        ("GET", "/databases", b"", 200),
        ("GET", "/databases?limit=0", b"", 422),
        ("GET", NOWHERE, b"", 404),
        ("POST", "/databases", b'{"name": "a"}', 202),
        ("POST", "/databases", b"{", 400),
        ("POST", "/databases", b'{"name": "A"}', 422),
        ("POST", "/databases", b" " * (1024 * 1024 + 1), 413),
        ("PATCH", NOWHERE, b'{"name": "a"}', 404),
        ("DELETE", NOWHERE, b"", 404),
    ],
)
async def test_every_answer_to_a_key_tells(shared: LoneApi, method: str, path: str, body: bytes, status: int) -> None:
    caller = await shared.caller(controls=KeyControls(requests_per_minute=9))
    answer = await caller.request(method, path, key=f"{method}{path}{body[:20]!r}", content=body)
    assert answer.status_code == status
    assert rate_headers(answer) == (9, 8, 60)


async def test_replays_conflicts_scopes_and_faults_tell_too(shared: LoneApi) -> None:
    caller = await shared.caller(controls=KeyControls(requests_per_minute=9))
    await caller.create("a", key="k")
    assert rate_headers(await caller.create("a", key="k"))[:2] == (9, 7)
    conflict = await caller.create("b", key="k")
    assert (conflict.status_code, *rate_headers(conflict)[:2]) == (409, 9, 6)
    narrow = await shared.caller(scopes=("queries:write",), controls=KeyControls(requests_per_minute=9))
    forbidden = await narrow.get("/databases")
    assert (forbidden.status_code, *rate_headers(forbidden)[:2]) == (403, 9, 8)
    uuid = (await caller.create("c")).json()["data"]["uuid"]
    await make_active(uuid)
    await fetch("UPDATE databases SET password_sealed = '\\x00' WHERE uuid = $1", uuid)
    broken = await caller.get(f"/databases/{uuid}")
    assert (broken.status_code, *rate_headers(broken)[:2]) == (500, 9, 4)


async def test_answers_to_no_key_tell_nothing(shared: LoneApi) -> None:
    for headers in ({}, {"Authorization": "Bearer pk_live_unknown"}):
        answer = await shared.http.get("/api/v1/me", headers=headers)
        assert not {"ratelimit", "ratelimit-policy"} & answer.headers.keys()
