"""Clients that take their time, on raw sockets: they are ended, and everybody else goes on being served."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
import pytest
import pytest_asyncio

from tests.support.client import Caller
from tests.support.service import RunningService

CONNECTIONS = 24
"""That the process has room for."""
PER_KEY, PER_ADDRESS = 8, 16
LONG = 20
"""Seconds: what nothing here comes near unless something is broken."""
HEAD = "POST /api/v1/databases HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\n"


@dataclass(frozen=True)
class Impatient:
    """An API process with short deadlines and few places."""

    http: httpx.AsyncClient
    caller: Caller

    async def opened(self, stack: AsyncExitStack, text: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = urlsplit(str(self.http.base_url))
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        stack.callback(writer.close)
        writer.write(text.encode())
        await writer.drain()
        return reader, writer

    def head(self, *lines: str) -> str:
        return HEAD + "".join(f"{line}\r\n" for line in (f"Authorization: Bearer {self.caller.api_key}", *lines))

    async def serves(self) -> None:
        """A healthy client, on a connection of its own."""
        async with httpx.AsyncClient(base_url=self.http.base_url, timeout=LONG) as client:
            headers = {"Authorization": f"Bearer {self.caller.api_key}"}
            assert (await client.get("/api/v1/me", headers=headers)).status_code == 200


@pytest_asyncio.fixture(scope="module")
async def process(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    """Every test leaves it without a connection."""
    async with service.another_api(
        API_CONNECTIONS=str(CONNECTIONS),
        REQUEST_HEAD_TIMEOUT_SECONDS="1",
        REQUEST_BODY_TIMEOUT_SECONDS="1",
        REQUESTS_IN_FLIGHT_PER_KEY=str(PER_KEY),
        REQUESTS_IN_FLIGHT_PER_ADDRESS=str(PER_ADDRESS),
    ) as (http, _):
        yield http


@pytest_asyncio.fixture
async def impatient(process: httpx.AsyncClient, service: RunningService) -> AsyncIterator[Impatient]:
    async with httpx.AsyncClient(base_url=process.base_url, timeout=LONG) as http:
        yield Impatient(http, await service.caller(http=http))


async def ended(reader: asyncio.StreamReader) -> bytes:
    """All that the server sends before it closes the connection."""
    try:
        return await asyncio.wait_for(reader.read(), LONG)
    except ConnectionError:
        return b""


@pytest.mark.parametrize(
    "text",
    ["", "GET /health/live HTTP/1.1\r\nHost: x\r\nX-Slow: ", "PRI * HTTP/2.0\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ids=["nothing", "a head without an end", "a part of HTTP/2's beginning", "HTTP/2 and nothing more"],
)
async def test_heads_that_never_end_are_closed_and_leave_room(impatient: Impatient, text: str) -> None:
    async with AsyncExitStack() as stack:
        held = [await impatient.opened(stack, text) for _ in range(2 * CONNECTIONS)]
        await impatient.serves()
        for reader, _ in held:
            assert b" 200 " not in await ended(reader)


async def test_a_head_that_drips_is_no_slower_than_one_that_stops(impatient: Impatient) -> None:
    async with AsyncExitStack() as stack:
        reader, writer = await impatient.opened(stack, "GET /health/live HTTP/1.1\r\nX-Slow: ")
        dripping = asyncio.create_task(drip(writer))
        stack.callback(dripping.cancel)
        await ended(reader)


async def test_idle_connections_are_closed_and_leave_room(impatient: Impatient) -> None:
    text = "GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    async with AsyncExitStack() as stack:
        held = [await impatient.opened(stack, text) for _ in range(2 * CONNECTIONS)]
        await impatient.serves()
        for reader, _ in held:
            assert (await ended(reader)).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "lines",
    [("Content-Length: 40",), ("Content-Length: 100000",), ("Transfer-Encoding: chunked",)],
    ids=["small", "large", "chunked"],
)
@pytest.mark.parametrize("drips", [False, True], ids=["never sent", "drips"])
async def test_a_body_that_does_not_come_is_a_408(impatient: Impatient, lines: tuple[str, ...], drips: bool) -> None:
    async with AsyncExitStack() as stack:
        reader, writer = await impatient.opened(stack, impatient.head(*lines) + "\r\n")
        if drips:
            dripping = asyncio.create_task(drip(writer, chunked="chunked" in lines[0]))
            stack.callback(dripping.cancel)
        await impatient.serves()
        answer = await ended(reader)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 "), answer
    assert b"connection: close" in head.lower()
    assert json.loads(body)["error"]["code"] == "request_timeout"


async def test_bodies_that_nobody_reads_end_too(impatient: Impatient) -> None:
    """Of a request that is refused by its head alone."""
    async with AsyncExitStack() as stack:
        text = f"{HEAD}Content-Length: 100000\r\n\r\n"
        held = [await impatient.opened(stack, text) for _ in range(PER_ADDRESS)]
        await impatient.serves()
        for reader, _ in held:
            assert (await ended(reader)).startswith(b"HTTP/1.1 401 ")


async def test_one_key_leaves_room_for_others(impatient: Impatient, service: RunningService) -> None:
    other = await service.caller(http=impatient.http)
    async with AsyncExitStack() as stack:
        text = impatient.head("Content-Length: 40") + "\r\n"
        held = [await impatient.opened(stack, text) for _ in range(PER_KEY + 3)]
        assert (await other.get("/me")).status_code == 200
        answers = [await ended(reader) for reader, _ in held]
    statuses = sorted(answer.split()[1] for answer in answers)
    assert statuses == [b"408"] * PER_KEY + [b"429"] * 3
    assert sum(b"too_many_in_flight" in answer for answer in answers) == 3
    await impatient.serves()


async def test_one_address_has_a_bound_of_its_own(impatient: Impatient, service: RunningService) -> None:
    callers = [await service.caller(http=impatient.http) for _ in range(3)]
    async with AsyncExitStack() as stack:
        held = [
            await impatient.opened(stack, f"{HEAD}Authorization: Bearer {caller.api_key}\r\nContent-Length: 40\r\n\r\n")
            for caller in callers
            for _ in range(7)
        ]
        answers = [await ended(reader) for reader, _ in held]
    statuses = sorted(answer.split()[1] for answer in answers)
    assert statuses == [b"408"] * PER_ADDRESS + [b"429"] * (21 - PER_ADDRESS)


async def drip(writer: asyncio.StreamWriter, *, chunked: bool = False) -> None:
    while True:
        writer.write(b"1\r\n \r\n" if chunked else b" ")
        await asyncio.sleep(0.2)
