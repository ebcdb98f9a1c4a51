"""One request, bounded in time and in bytes, whatever the other side does."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from app.core.settings import Settings
from app.local.ports import LOOPBACK
from app.webhooks.egress.addresses import AddressRule
from app.webhooks.egress.connections import ReceiverConnections
from app.webhooks.egress.guard import Guard, GuardedBackend
from app.webhooks.egress.lookups import resolve_by_system
from app.webhooks.egress.sender import AttemptResult, Sender
from tests.support.proxy import both_ways
from tests.support.receiver import Received, Receiver, answer, hang, receiver, reset
from tests.support.waiting import LIMIT_SECONDS, until

HANGING = 120


@asynccontextmanager
async def sender(outside: Receiver, **settings: Any) -> AsyncIterator[Sender]:
    made = Sender(Settings(webhook_allow_cidrs=("127.0.0.0/8",), webhook_ca_file=outside.ca_file, **settings))
    try:
        yield made
    finally:
        await made.close()


@pytest_asyncio.fixture
async def by(outside: Receiver) -> AsyncIterator[Sender]:
    async with sender(outside, webhook_timeout_seconds=LIMIT_SECONDS) as made:
        yield made


@pytest_asyncio.fixture
async def other(outside: Receiver, tmp_path: Path) -> AsyncIterator[Receiver]:
    """Another that who trusts `outside` trusts."""
    folder = tmp_path / "other"
    folder.mkdir()
    async with receiver(folder) as made:
        outside.ca_file.write_text(outside.ca_file.read_text() + made.ca_file.read_text())
        yield made


async def send(by: Sender, outside: Receiver) -> AttemptResult:
    return await by.send(outside.url("/hook?a=b"), {"X-Test": "1"}, b'{"a":1}')


async def arrived(by: Sender, outside: Receiver) -> AttemptResult:
    """The first attempt that reaches the receiver: where the machine stalls, the time of one may be over before."""
    while True:
        tried = await send(by, outside)
        if outside.received:
            return tried


async def test_what_is_sent(by: Sender, outside: Receiver) -> None:
    sent = await send(by, outside)
    assert (sent.delivered, sent.code, sent.body, sent.retry_after) == (True, 200, "thanks", None)
    (received,) = outside.received
    assert (received.path, received.body) == ("/hook?a=b", b'{"a":1}')
    headers = received.headers
    assert headers.pop("user-agent").startswith("Headwater-Webhooks/")
    assert headers == {
        "host": f"127.0.0.1:{outside.port}",
        "content-type": "application/json",
        "content-length": "7",
        "accept": "*/*",
        "accept-encoding": "identity",
        "x-test": "1",
    }


async def test_a_connection_serves_again(by: Sender, outside: Receiver) -> None:
    for _ in range(5):
        assert (await send(by, outside)).delivered
    assert (outside.connections, len(outside.received)) == (1, 5)


async def test_it_is_kept_beside_many_to_a_receiver_that_hangs(outside: Receiver, other: Receiver) -> None:
    other.replies["/hang"] = hang
    async with sender(outside, webhook_timeout_seconds=LIMIT_SECONDS) as by, asyncio.TaskGroup() as requests:
        waiting = [requests.create_task(by.send(other.url("/hang"), {}, b"{}")) for _ in range(HANGING)]
        await until(lambda: len(other.received) == HANGING)
        for _ in range(5):
            assert (await send(by, outside)).delivered
        for one in waiting:
            one.cancel()
    assert (outside.connections, len(outside.received)) == (1, 5)


@pytest.mark.parametrize(("unused", "opened"), [(1, 2), (0, 5)])
async def test_so_many_are_kept_to_receivers_that_nothing_is_sent_to(
    outside: Receiver, other: Receiver, unused: int, opened: int
) -> None:
    """Those that were used longest ago are closed."""
    guard = Guard(AddressRule(("127.0.0.0/8",)), resolve_by_system)
    connections = ReceiverConnections(lambda: ssl.create_default_context(cafile=outside.ca_file), guard, unused=unused)
    limits = {"timeout": dict.fromkeys(("connect", "read", "write", "pool"), LIMIT_SECONDS)}
    for receiving in (outside, other, outside, other, outside):
        async with connections.of(LOOPBACK, receiving.port) as pool:
            assert (await pool.request("GET", receiving.url(), extensions=limits)).status == 200
    await connections.close()
    assert outside.connections + other.connections == opened


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_any_2xx_delivers(by: Sender, outside: Receiver, status: int) -> None:
    outside.replies["/hook?a=b"] = answer(status)
    assert (await send(by, outside)).delivered


@pytest.mark.parametrize("status", [300, 308, 400, 401, 404, 410, 429, 500, 503, 599])
async def test_nothing_else_does(by: Sender, outside: Receiver, status: int) -> None:
    outside.replies["/hook?a=b"] = answer(status, body=b"no")
    refused = await send(by, outside)
    assert not refused.delivered
    assert (refused.code, refused.body) == (status, "no")
    assert str(status) in (refused.error or "")


async def test_one_that_hangs(outside: Receiver) -> None:
    outside.replies["/hook?a=b"] = hang
    async with sender(outside, webhook_timeout_seconds=2) as by:
        hung = await arrived(by, outside)
    assert (hung.code, hung.error) == (None, "No answer within 2 s.")
    assert hung.duration > 1.9


async def test_one_that_resets(by: Sender, outside: Receiver) -> None:
    outside.replies["/hook?a=b"] = reset
    lost = await send(by, outside)
    assert lost.code is None
    assert "connection was lost" in (lost.error or "")
    outside.replies.clear()
    assert (await send(by, outside)).delivered


async def test_one_that_is_not_there(by: Sender, outside: Receiver) -> None:
    gone = await by.send("https://127.0.0.1:1/", {}, b"")
    assert gone.code is None
    assert "refused" in (gone.error or "").lower()


async def test_one_that_drips_its_head(outside: Receiver) -> None:
    async def drip(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(1000):
            writer.write(f"X-{number}: a\r\n".encode())
            await asyncio.sleep(0.05)

    outside.replies["/hook?a=b"] = drip
    async with sender(outside, webhook_timeout_seconds=2) as by:
        dripping = await arrived(by, outside)
    assert dripping.error == "No answer within 2 s."


async def test_one_whose_body_never_ends(by: Sender, outside: Receiver) -> None:
    poured_octets = 0

    async def pour(_: Received, writer: asyncio.StreamWriter) -> None:
        nonlocal poured_octets
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
            await writer.drain()
            poured_octets += 4096

    outside.replies["/hook?a=b"] = pour
    poured = await send(by, outside)
    assert poured.delivered
    assert poured.body == "x" * 2048
    assert poured_octets < 16 * 2**20, "no more than the buffers on the way take"


async def test_one_that_goes_on_with_interim_responses(by: Sender, outside: Receiver) -> None:
    async def go_on(_: Received, __: asyncio.StreamWriter) -> bytes:
        return b"HTTP/1.1 100 \r\n\r\n" * 200_000 + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    outside.replies["/hook?a=b"] = go_on
    given_up = await send(by, outside)
    assert (given_up.code, given_up.error) == (None, "No answer within 80 KiB.")


async def test_one_whose_chunks_are_mostly_not_content_has_answered(by: Sender, outside: Receiver) -> None:
    """What is read of its content is bounded by all that comes with it."""

    async def chunk(_: Received, __: asyncio.StreamWriter) -> bytes:
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        return head + (b"1;" + b"a" * 1020 + b"\r\nx\r\n") * 3000 + b"0\r\n\r\n"

    outside.replies["/hook?a=b"] = chunk
    chunked = await send(by, outside)
    assert chunked.delivered
    assert 0 < len(chunked.body or "") < 80


async def test_one_whose_body_stalls_has_answered(by: Sender, outside: Receiver) -> None:
    async def stall(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        await asyncio.sleep(3600)

    outside.replies["/hook?a=b"] = stall
    stalled = await send(by, outside)
    assert (stalled.delivered, stalled.body) == (True, "abc")


async def test_bytes_that_are_no_text(by: Sender, outside: Receiver) -> None:
    outside.replies["/hook?a=b"] = answer(500, body=b"\xff\x00caf\xc3\xa9")
    assert (await send(by, outside)).body == "\ufffd\ufffdcafé"


async def test_one_that_speaks_no_tls(by: Sender) -> None:
    async def shout(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(shout, "127.0.0.1", 0)
    async with server:
        shouted = await by.send(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/", {}, b"")
    assert shouted.code is None
    assert (shouted.error or "").startswith("No connection: ")


async def test_a_handshake_that_is_cancelled_leaves_no_connection() -> None:
    greeted, left = asyncio.Event(), asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        greeted.set()
        await reader.read()
        left.set()
        writer.close()

    server = await asyncio.start_server(listen, LOOPBACK, 0)
    backend = GuardedBackend(Guard(AddressRule(("127.0.0.0/8",)), resolve_by_system))
    async with server, asyncio.timeout(LIMIT_SECONDS):
        stream = await backend.connect_tcp(LOOPBACK, server.sockets[0].getsockname()[1], LIMIT_SECONDS)
        handshake = asyncio.create_task(stream.start_tls(ssl.create_default_context(), LOOPBACK))
        await greeted.wait()
        handshake.cancel()
        with pytest.raises(asyncio.CancelledError):
            await handshake
        await left.wait()


async def test_any_fault_of_the_connection_is_a_failed_attempt(by: Sender, outside: Receiver) -> None:
    """Here TLS fails after its handshake."""

    async def spoil(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", outside.port)
        forwarding = asyncio.create_task(both_ways((reader, there_writer), (there_reader, writer)))
        await until(lambda: outside.received)
        # A record of the right form that nobody has encrypted: the sender hangs up.
        writer.write(b"\x17\x03\x03\x00\x20" + b"x" * 32)
        await forwarding
        writer.transport.abort()
        there_writer.transport.abort()

    outside.replies["/"] = hang
    server = await asyncio.start_server(spoil, "127.0.0.1", 0)
    async with server:
        lost = await by.send(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/", {}, b"")
    assert not lost.delivered
    assert "connection was lost" in (lost.error or "")


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_an_authority_that_cant_be_read(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ValueError, match=f"HEADWATER_WEBHOOK_CA_FILE: {file}"):
        Sender(Settings(webhook_ca_file=file))


RETRY_AFTER = {
    "7": 7.0,
    "0": 0.0,
    "99999999999999999999": 86_400.0,
    "-5": None,
    "soon": None,
    "": None,
    "1.5": None,
    "Wed, 21 Oct 2015 07:28:00 GMT": 0.0,
}


@pytest.mark.parametrize("value", RETRY_AFTER)
@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after(by: Sender, outside: Receiver, status: int, value: str) -> None:
    outside.replies["/hook?a=b"] = answer(status, Retry_After=value)
    assert (await send(by, outside)).retry_after == RETRY_AFTER[value]


async def test_retry_after_as_a_date_and_of_other_answers(by: Sender, outside: Receiver) -> None:
    moment = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    outside.replies["/hook?a=b"] = answer(429, Retry_After=moment)
    wait = (await send(by, outside)).retry_after
    assert wait is not None
    assert 3000 < wait <= 3600
    outside.replies["/hook?a=b"] = answer(500, Retry_After="7")
    assert (await send(by, outside)).retry_after is None
