"""Clients that take their time, on raw sockets: they are ended, and everybody else goes on being served."""

import asyncio
import contextlib
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
from tests.support.waiting import until

CONNECTIONS = 24
"""That the process has room for."""
PER_KEY, PER_ADDRESS = 8, 16
LONG = 120
"""Seconds: what nothing here comes near unless something is broken."""
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
HEAD = "POST /api/v1/databases HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\n"


@dataclass(frozen=True)
class Narrow:
    """An API process with few places."""

    http: httpx.AsyncClient
    caller: Caller

    async def opened(self, stack: AsyncExitStack, text: str) -> Connection:
        address = urlsplit(str(self.http.base_url))
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        stack.callback(writer.close)
        writer.write(text.encode())
        await writer.drain()
        return reader, writer

    def head(self, *lines: str) -> str:
        return HEAD + "".join(f"{line}\r\n" for line in (f"Authorization: Bearer {self.caller.api_key}", *lines))

    async def asking_first(self, stack: AsyncExitStack, caller: Caller) -> Connection:
        """A request that holds its body back until it is let in: so its client knows when it is."""
        lines = f"Authorization: Bearer {caller.api_key}\r\nExpect: 100-continue\r\nConnection: close\r\n"
        return await self.opened(stack, f"{HEAD}{lines}Content-Length: 40\r\n\r\n")

    async def serves(self) -> None:
        """A healthy client, on a connection of its own."""
        async with httpx.AsyncClient(base_url=self.http.base_url, timeout=LONG) as client:
            await until(lambda: self._answers(client))

    async def _answers(self, client: httpx.AsyncClient) -> bool:
        headers = {"Authorization": f"Bearer {self.caller.api_key}"}
        try:
            answer = await client.get("/api/v1/me", headers=headers)
        except (httpx.NetworkError, httpx.RemoteProtocolError):
            return False  # on a machine that stalls its head came too late
        assert answer.status_code == 200
        return True


def narrow(deadline: str) -> dict[str, str]:
    return {
        "API_CONNECTIONS": str(CONNECTIONS),
        "REQUEST_HEAD_TIMEOUT_SECONDS": deadline,
        "REQUEST_BODY_TIMEOUT_SECONDS": deadline,
        "REQUESTS_IN_FLIGHT_PER_KEY": str(PER_KEY),
        "REQUESTS_IN_FLIGHT_PER_ADDRESS": str(PER_ADDRESS),
    }


@pytest_asyncio.fixture(scope="module")
async def process(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    """Every test leaves it without a connection."""
    async with service.another_api(**narrow("1")) as (http, _):
        yield http


@pytest_asyncio.fixture
async def impatient(process: httpx.AsyncClient, service: RunningService) -> AsyncIterator[Narrow]:
    async with httpx.AsyncClient(base_url=process.base_url, timeout=LONG) as http:
        yield Narrow(http, await service.caller(http=http))


@pytest_asyncio.fixture(scope="module")
async def patient_process(service: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    """Where a request keeps its place for as long as its test wants, however busy the machine is."""
    async with service.another_api(**narrow("600")) as (http, _):
        yield http


@pytest_asyncio.fixture
async def patient(patient_process: httpx.AsyncClient, service: RunningService) -> AsyncIterator[Narrow]:
    async with httpx.AsyncClient(base_url=patient_process.base_url, timeout=LONG) as http:
        yield Narrow(http, await service.caller(http=http))


async def ended(reader: asyncio.StreamReader) -> bytes:
    """All that the server sends before it closes the connection. Whoever goes on writing begins this first: after a
    reset a reader tells nothing of what it has."""
    said = b""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(LONG):
            while block := await reader.read(65_536):
                said += block
    return said


@pytest.mark.parametrize(
    "text",
    ["", "GET /health/live HTTP/1.1\r\nHost: x\r\nX-Slow: ", "PRI * HTTP/2.0\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ids=["nothing", "a head without an end", "a part of HTTP/2's beginning", "HTTP/2 and nothing more"],
)
async def test_heads_that_never_end_are_closed_and_leave_room(impatient: Narrow, text: str) -> None:
    async with AsyncExitStack() as stack:
        held = [await impatient.opened(stack, text) for _ in range(2 * CONNECTIONS)]
        await impatient.serves()
        for reader, _ in held:
            assert b" 200 " not in await ended(reader)


async def test_a_head_that_drips_is_no_slower_than_one_that_stops(impatient: Narrow) -> None:
    async with AsyncExitStack() as stack:
        reader, writer = await impatient.opened(stack, "GET /health/live HTTP/1.1\r\nX-Slow: ")
        dripping = asyncio.create_task(drip(writer))
        stack.callback(dripping.cancel)
        await ended(reader)


async def test_idle_connections_are_closed_and_leave_room(impatient: Narrow) -> None:
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
async def test_a_body_that_does_not_come_is_a_408(impatient: Narrow, lines: tuple[str, ...], drips: bool) -> None:
    async with AsyncExitStack() as stack:
        reader, writer = await impatient.opened(stack, impatient.head(*lines) + "\r\n")
        answering = asyncio.create_task(ended(reader))
        stack.callback(answering.cancel)
        if drips:
            dripping = asyncio.create_task(drip(writer, chunked="chunked" in lines[0]))
            stack.callback(dripping.cancel)
        await impatient.serves()
        answer = await answering
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 "), answer
    assert b"connection: close" in head.lower()
    assert json.loads(body)["error"]["code"] == "request_timeout"


async def test_bodies_that_nobody_reads_end_too(impatient: Narrow) -> None:
    """Of a request that is refused by its head alone."""
    async with AsyncExitStack() as stack:
        text = f"{HEAD}Content-Length: 100000\r\n\r\n"
        held = [await impatient.opened(stack, text) for _ in range(PER_ADDRESS)]
        await impatient.serves()
        for reader, _ in held:
            assert (await ended(reader)).startswith(b"HTTP/1.1 401 ")


async def test_bodies_that_do_not_come_give_their_places_back(impatient: Narrow) -> None:
    async with AsyncExitStack() as stack:
        text = impatient.head("Content-Length: 40") + "\r\n"
        held = [await impatient.opened(stack, text) for _ in range(PER_KEY)]
        for reader, _ in held:
            assert (await ended(reader)).startswith(b"HTTP/1.1 408 ")
    await impatient.serves()


async def test_one_key_leaves_room_for_others(patient: Narrow, service: RunningService) -> None:
    other = await service.caller(http=patient.http)
    async with AsyncExitStack() as stack:
        held = [await patient.asking_first(stack, patient.caller) for _ in range(PER_KEY + 3)]
        let_in, refused = await parted(held)
        assert (len(let_in), len(refused)) == (PER_KEY, 3)
        assert (await other.get("/me")).status_code == 200
        for reader, _ in refused:
            assert b"too_many_in_flight" in await ended(reader)
        await complete(let_in)
    await patient.serves()


async def test_one_address_has_a_bound_of_its_own(patient: Narrow, service: RunningService) -> None:
    callers = [await service.caller(http=patient.http) for _ in range(3)]
    async with AsyncExitStack() as stack:
        held = [await patient.asking_first(stack, caller) for caller in callers for _ in range(7)]
        let_in, refused = await parted(held)
        assert (len(let_in), len(refused)) == (PER_ADDRESS, 21 - PER_ADDRESS)
        await complete(let_in)


async def parted(held: list[Connection]) -> tuple[list[Connection], list[Connection]]:
    """Those who asked first and may send their bodies, and those who are refused."""
    statuses = [(await asyncio.wait_for(reader.readline(), LONG)).split()[1] for reader, _ in held]
    assert set(statuses) <= {b"100", b"429"}
    let_in = [one for one, status in zip(held, statuses, strict=True) if status == b"100"]
    return let_in, [one for one in held if one not in let_in]


async def complete(held: list[Connection]) -> None:
    """Sends their bodies, which are no JSON."""
    for _, writer in held:
        writer.write(b" " * 40)
    for reader, _ in held:
        assert b"HTTP/1.1 400 " in await ended(reader)


async def drip(writer: asyncio.StreamWriter, *, chunked: bool = False) -> None:
    while True:
        writer.write(b"1\r\n \r\n" if chunked else b" ")
        await asyncio.sleep(0.2)
