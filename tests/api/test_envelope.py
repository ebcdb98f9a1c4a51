"""Every answer carries its request's id, and every refusal has one shape."""

import io
import json
import logging

import pytest

from app.core import logging as our_logging
from app.store.session import fetch
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.together import together

MIB = 1024 * 1024


async def test_each_request_has_an_id_of_its_own(lone: LoneApi) -> None:
    caller = await lone.caller()
    answers = [await caller.get("/me") for _ in range(3)]
    assert len({body_of(answer)["request_id"] for answer in answers}) == 3


async def test_the_client_does_not_choose_the_request_id(lone: LoneApi) -> None:
    caller = await lone.caller()
    answer = await caller.get("/me", headers={"X-Request-Id": "mine"})
    assert body_of(answer)["request_id"] != "mine"


async def test_no_cache_keeps_an_answer(lone: LoneApi) -> None:
    caller = await lone.caller()
    for path in ("/me", "/databases", "/databases/nothing"):
        assert (await caller.get(path)).headers["Cache-Control"] == "no-store"


@together("path", ["/", "/api", "/api/v1", "/api/v2/databases", "/api/v1/nothing", "/api/v1/databases/"])
async def test_an_unknown_path(lone: LoneApi, path: str) -> None:
    error_of(await lone.http.get(path + "/x/y/z"), 404, "not_found")


@together(
    ("method", "path", "allowed"),
    [
        ("PUT", "/api/v1/databases", {"GET", "POST"}),
        ("POST", "/api/v1/me", {"GET"}),
        ("DELETE", "/api/v1/database_types", {"GET"}),
        ("PUT", "/api/v1/databases/00000000-0000-0000-0000-000000000000", {"GET", "PATCH", "DELETE"}),
        ("GET", "/api/v1/databases/00000000-0000-0000-0000-000000000000/quotas", {"PATCH"}),
    ],
)
async def test_a_method_that_is_not_allowed(lone: LoneApi, method: str, path: str, allowed: set[str]) -> None:
    answer = await lone.http.request(method, path)
    error_of(answer, 405, "method_not_allowed")
    assert answer.headers["Allow"] == ", ".join(sorted({*allowed, "OPTIONS"}))


@together("body", [b"", b"{", b"name=x", b'{"name": "\xff"}', b"\x00", b'{"name": "a",}', b"NaN"])
async def test_what_is_not_json(lone: LoneApi, body: bytes) -> None:
    caller = await lone.caller()
    error_of(await caller.request("POST", "/databases", key="k", content=body), 400, "malformed_json")
    assert not await fetch("SELECT 1 FROM idempotency_keys")


@pytest.mark.parametrize("body", [b"{", b"[" * 100_000])
async def test_a_body_that_is_not_read_may_still_not_be_nonsense(lone: LoneApi, body: bytes) -> None:
    caller = await lone.caller()
    uuid = data_of(await caller.create(), 202)["uuid"]
    error_of(await caller.request("DELETE", f"/databases/{uuid}", key="k", content=body), 400, "malformed_json")
    assert data_of(await caller.get(f"/databases/{uuid}"))["status"] == "provisioning"


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_a_body_above_the_limit(lone: LoneApi, method: str) -> None:
    caller = await lone.caller()
    uuid = data_of(await caller.create(), 202)["uuid"]
    path = "/databases" if method == "POST" else f"/databases/{uuid}"
    too_large = json.dumps({"name": "x" * MIB}).encode()
    error_of(await caller.request(method, path, key="k", content=too_large), 413, "payload_too_large")


async def test_a_body_above_the_limit_that_does_not_tell_its_length(lone: LoneApi) -> None:
    caller = await lone.caller()

    async def chunks() -> object:
        for _ in range(17):
            yield b" " * (MIB // 16)

    error_of(await caller.request("POST", "/databases", key="k", content=chunks()), 413, "payload_too_large")


async def test_a_body_at_the_limit(lone: LoneApi) -> None:
    caller = await lone.caller()
    body = b'{"name": "x"}'.ljust(MIB)
    data_of(await caller.request("POST", "/databases", key="k", content=body), 202)


async def test_an_unexpected_failure(lone: LoneApi, broken_database: str, log: io.StringIO) -> None:
    caller = await lone.caller()
    await fetch("UPDATE databases SET team_id = $1", caller.team_id)
    answer = await caller.get(f"/databases/{broken_database}")
    error_of(answer, 500, "internal_error")
    assert "Traceback" not in answer.text
    assert "Secret" not in answer.text
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    mine = [line for line in lines if line.get("request_id") == answer.headers["X-Request-Id"]]
    assert [line["event"] for line in mine] == ["unexpected_error", "request"]
    assert "InvalidSecret" in mine[0]["exception"]
    assert mine[0]["route"] == "/api/v1/databases/{uuid}"
    assert (mine[1]["level"], mine[1]["error"]) == ("error", "internal_error")


@pytest.fixture
async def broken_database(lone: LoneApi) -> str:
    """A database whose sealed password was tampered with, so that reading it fails unexpectedly."""
    owner: Caller = await lone.caller()
    uuid: str = data_of(await owner.create(), 202)["uuid"]
    await fetch("UPDATE databases SET password_sealed = password_sealed || '\\x00'::bytea")
    return uuid


@pytest.fixture
def log() -> object:
    """What this process logs, in the form of production."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    our_logging.configure("json")
    lines = io.StringIO()
    root.handlers[0].setStream(lines)  # type: ignore[attr-defined]  # configure made it a stream handler
    yield lines
    root.handlers, root.level = handlers, level
