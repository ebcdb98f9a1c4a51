"""A refusal reaches the client that is still writing its body, and a body that breaks off is no fault of ours."""

import asyncio
import json
from urllib.parse import urlsplit

import pytest

from tests.support.service import RunningService
from tests.support.waiting import LIMIT_SECONDS

_PIECES = 40
_PIECE = b" " * 65_536


@pytest.mark.parametrize("bearer", [True, False], ids=["too large", "nobody's"])
async def test_a_refusal_waits_for_the_body(service: RunningService, bearer: bool) -> None:
    caller = await service.caller()
    address = urlsplit(str(service.http.base_url))
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    length = _PIECES * len(_PIECE)
    head = f"POST /api/v1/databases HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: {length}\r\n"
    head += f"Authorization: Bearer {caller.api_key}\r\n" if bearer else ""
    writer.write(head.encode() + b"\r\n")
    for _ in range(_PIECES):
        # A reset would show here, or take the answer away below.
        writer.write(_PIECE)
        await writer.drain()
        await asyncio.sleep(0.01)
    status = await asyncio.wait_for(reader.readline(), LIMIT_SECONDS)
    assert status.split()[1] == (b"413" if bearer else b"401")
    writer.close()


@pytest.mark.parametrize("expect", [b"", b"Expect: 100-continue\r\n"], ids=["at once", "asking first"])
@pytest.mark.parametrize(
    "body",
    [
        b'Content-Length: 50\r\n\r\n{"name"',
        b'Transfer-Encoding: chunked\r\n\r\n9\r\n{"name"',
        b"Transfer-Encoding: chunked\r\n\r\nno number\r\n",
    ],
    ids=["too short", "no last chunk", "no chunk"],
)
async def test_a_body_that_breaks_off(service: RunningService, body: bytes, expect: bytes) -> None:
    caller = await service.caller()
    address = urlsplit(str(service.http.base_url))
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    head = f"POST /api/v1/databases HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nAuthorization: Bearer {caller.api_key}"
    writer.write(head.encode() + b"\r\n" + expect + body)
    writer.write_eof()
    answer = await asyncio.wait_for(reader.read(), LIMIT_SECONDS)
    # Who asked first gets a 100 before it.
    assert b"HTTP/1.1 400 " in answer
    assert json.loads(answer.rpartition(b"\r\n\r\n")[2])["error"]["code"] == "malformed_json"
    writer.close()
