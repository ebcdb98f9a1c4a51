"""A refusal reaches the client that is still writing its body."""

import asyncio
from urllib.parse import urlsplit

import pytest

from tests.support.service import RunningService

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
    status = await asyncio.wait_for(reader.readline(), 10)
    assert status.split()[1] == (b"413" if bearer else b"401")
    writer.close()
