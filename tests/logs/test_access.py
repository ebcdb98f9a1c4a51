"""The access log: every request has one line, whatever became of it, and no line has anything secret."""

import asyncio
import contextlib
import io
import json
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.auth.keys import KeyControls
from app.http.requests import Requests
from app.local.ports import LOOPBACK
from tests.logs.lines import Line, line_of, lines_of
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.waiting import until

ROUTE = "/api/v1/databases/{uuid}"


async def line_after(service: RunningService, answer: httpx.Response) -> Line:
    return await line_of(service, answer.headers["X-Request-Id"])


async def test_what_a_line_says(service: RunningService, caller: Caller) -> None:
    made = await caller.created()
    line = await line_after(service, await caller.get(f"/databases/{made['uuid']}"))
    assert line.pop("duration_ms") > 0
    assert line.pop("timestamp").endswith("Z")
    assert line.pop("request_id").startswith("req_")
    assert line == {
        "event": "request",
        "logger": "app.http.access",
        "level": "info",
        "method": "GET",
        "route": ROUTE,
        "status": 200,
        "client": LOOPBACK,
        "user_id": caller.user_id,
        "team_id": caller.team_id,
        "key_id": caller.key_id,
        "resource": made["uuid"],
    }


async def test_refused_requests_have_theirs(service: RunningService, caller: Caller) -> None:
    slow = await service.caller(controls=KeyControls(requests_per_minute=1))
    await slow.get("/me")
    answers = {
        "unauthorized": await service.http.get("/api/v1/me"),
        "invalid_api_key": await service.http.get("/api/v1/me", headers={"Authorization": "Bearer pk_live_unknown"}),
        "rate_limit_exceeded": await slow.get("/me"),
        "not_found": await caller.get(f"/databases/{uuid4()}"),
        "method_not_allowed": await caller.request("PUT", "/me"),
        "payload_too_large": await caller.post("/databases", {"name": "x" * 2**20}),
        "missing_required_field": await caller.post("/databases", {}),
    }
    for code, answer in answers.items():
        line = await line_after(service, answer)
        assert (line["status"], line["error"]) == (answer.status_code, code)
    assert (await line_after(service, answers["rate_limit_exceeded"]))["key_id"] == slow.key_id
    assert (await line_after(service, answers["not_found"]))["team_id"] == caller.team_id
    nobody = await line_after(service, answers["unauthorized"])
    assert nobody.keys() & {"key_id", "team_id", "user_id"} == set()
    assert nobody["client"] == LOOPBACK


async def test_nothing_of_a_clients_own_text_is_in_it(service: RunningService, caller: Caller) -> None:
    """A path, a method and a query may hold anything, secrets pasted by mistake among it."""
    text = f"secret{uuid4().hex}"
    answers = [
        await service.http.get(f"/{text}"),
        await service.http.get("/api/v1/me", params={"key": text}, headers={"X-Request-Id": text, "User-Agent": text}),
        await caller.get(f"/databases/{text}"),
        await caller.post("/databases", {"name": text, text: text}),
        await service.http.request(text.upper(), "/api/v1/me"),
    ]
    lines = [await line_after(service, answer) for answer in answers]
    assert [line["route"] for line in lines] == [
        "unmatched",
        "/api/v1/me",
        ROUTE,
        "/api/v1/databases",
        "unmatched",
    ]
    assert lines[-1]["method"] == "other"
    log = (service.folder / "api.log").read_text()
    assert text not in log.lower()
    assert caller.api_key not in log


@pytest.mark.parametrize("path", ["/health/ready", "/docs", "/openapi.json", "/docs/swagger-ui-bundle.js"])
async def test_pages_have_theirs(service: RunningService, path: str) -> None:
    line = await line_after(service, await service.http.get(path))
    assert (line["status"], line["method"]) == (200, "GET")
    assert "broken_off" not in line


async def test_a_body_that_never_ends(service: RunningService, caller: Caller) -> None:
    """Its client goes away in the middle of it: nobody reads the answer, the line is there."""
    mark = await _sent_half(service, caller)

    async def look() -> list[Line]:
        found = lines_of(service.folder / "api.log")[mark:]
        return [line for line in found if line.get("key_id") == caller.key_id and line["event"] == "request"]

    (line,) = await until(look)
    assert (line["method"], line["route"], line["error"]) == ("POST", "/api/v1/databases", "malformed_json")


async def _sent_half(service: RunningService, caller: Caller) -> int:
    """The number of lines before."""
    before = len(lines_of(service.folder / "api.log"))
    _, writer = await asyncio.open_connection(LOOPBACK, service.api.port)
    head = (
        f"POST /api/v1/databases HTTP/1.1\r\nHost: {LOOPBACK}\r\nAuthorization: Bearer {caller.api_key}\r\n"
        f"Idempotency-Key: {uuid4()}\r\nContent-Length: 1000\r\n\r\n"
    )
    writer.write(head.encode() + json.dumps({"name": "half"}).encode()[:-1])
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    return before


async def test_a_client_that_does_not_wait_for_its_answer(service: RunningService, caller: Caller) -> None:
    """A download whose client goes away when it has begun: the server takes all of the answer, and has its line."""
    before = len(lines_of(service.folder / "api.log"))
    reader, writer = await asyncio.open_connection(LOOPBACK, service.api.port, limit=1024)
    writer.write(f"GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: {LOOPBACK}\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    writer.transport.abort()

    async def look() -> list[Line]:
        found = lines_of(service.folder / "api.log")[before:]
        return [line for line in found if line.get("route", "").startswith("/docs/")]

    (line,) = await until(look)
    assert line["status"] == 200


async def test_a_stream_that_ends_before_its_time(json_log: io.StringIO) -> None:
    """What was begun and not sent to its end is marked, whatever ended it."""
    begun = asyncio.Event()

    async def streaming(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a part", "more_body": True})
        begun.set()
        await asyncio.Event().wait()

    async def take(message: Any) -> None:
        return

    scope: Any = {"type": "http", "method": "GET", "path": "/", "headers": [], "client": (LOOPBACK, 1)}
    serving = asyncio.ensure_future(Requests(streaming)(scope, take, take))  # type: ignore[arg-type]
    await begun.wait()
    serving.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await serving
    line = json.loads(json_log.getvalue())
    assert (line["status"], line["broken_off"], line["route"]) == (200, True, "unmatched")
    assert line["request_id"].startswith("req_")
