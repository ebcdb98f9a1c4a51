"""Servers that ask for the password itself get it over verified TLS alone. The servers are made up: they stand for
whoever sits between us and a host, or in its place."""

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
import trustme

from app.contracts.base import Engine
from app.engines.base import AdminAddress, HostUnavailable
from app.engines.registry import open_adapter
from app.engines.tls import PLAIN, TlsMode, TlsPolicy
from app.local.ports import LOOPBACK
from tests.support.tls_front import pem, postgres_front
from tests.support.waiting import LIMIT_SECONDS, until

CA = trustme.CA()
SECRET = "the-administrator's-own-password"
UNPROVEN = (PLAIN, TlsPolicy(mode=TlsMode.REQUIRE), TlsPolicy(mode=TlsMode.PREFER))
PROVEN = (TlsPolicy(mode=TlsMode.REQUIRE, ca=pem(CA)), TlsPolicy(mode=TlsMode.VERIFY_FULL, ca=pem(CA)))
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_PATIENCE_SECONDS = LIMIT_SECONDS
# SSL, protocol 4.1, transactions, secure connection, plugins
_CAPABILITIES = 0x0008_A20F | 0x0800
_PLUGIN_AUTH = 0x0008_0000


class Thief:
    """What the server was told, after any TLS."""

    def __init__(self) -> None:
        self.heard = b""
        self.reached = asyncio.Event()
        """It came as far as asking."""

    async def listen(self, reader: asyncio.StreamReader) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                self.heard += data


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[int]:
    async def until_cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await serve(reader, writer)
        writer.transport.abort()

    server = await asyncio.start_server(until_cut, LOOPBACK, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def log_in(engine: Engine, port: int, policy: TlsPolicy) -> str:
    """What is said of the attempt."""
    address = AdminAddress(host=LOOPBACK, port=port, user="administrator", password=SECRET, tls=policy)
    adapter = open_adapter(engine, address)
    try:
        with pytest.raises(HostUnavailable) as refusal:
            await adapter.inspect_host()
        assert SECRET not in str(refusal.value)
        return str(refusal.value)
    finally:
        await adapter.close()


@asynccontextmanager
async def asking_postgres(request: bytes, thief: Thief, *, in_octets: bool = False) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (length,) = struct.unpack("!l", await reader.readexactly(4))
        await reader.readexactly(length - 4)
        for part in [request[at : at + 1] for at in range(len(request))] if in_octets else [request]:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        thief.reached.set()
        await thief.listen(reader)

    async with listening(serve) as port, postgres_front(port, CA.issue_cert(LOOPBACK)) as front:
        yield front.port


def authentication(method: int) -> bytes:
    return b"R" + struct.pack("!ll", 8, method)


@pytest.mark.parametrize("policy", UNPROVEN)
@pytest.mark.parametrize("in_octets", [False, True])
async def test_postgres_asks_for_the_password(policy: TlsPolicy, in_octets: bool) -> None:
    thief = Thief()
    async with asking_postgres(authentication(3), thief, in_octets=in_octets) as port:
        assert "asks for the password itself" in await log_in(Engine.POSTGRES, port, policy)
        assert thief.reached.is_set()
    assert thief.heard == b""


async def test_postgres_sends_a_message_without_end() -> None:
    thief = Thief()
    async with asking_postgres(b"E" + struct.pack("!l", 2_000_000_000) + b"S" * 100_000, thief) as port:
        assert "too long" in await log_in(Engine.POSTGRES, port, PLAIN)


@pytest.mark.parametrize("policy", PROVEN)
async def test_a_proven_postgres_gets_it(policy: TlsPolicy) -> None:
    """Where an operator has it look up passwords elsewhere, such as in LDAP."""
    thief = Thief()
    refused = b"SFATAL\0C57P03\0Mlater\0\0"
    answer = authentication(3) + b"E" + struct.pack("!l", len(refused) + 4) + refused
    async with asking_postgres(answer, thief) as port:
        await log_in(Engine.POSTGRES, port, policy)

        async def heard() -> bool:
            return SECRET.encode() in thief.heard

        await until(heard)


class FakeMySQL:
    """Greets with one plugin, and sends these packets then, each after one of the client's. On plain sockets: what
    comes after a client's request for TLS must not be read before TLS begins."""

    def __init__(self, plugin: str, *packets: bytes, capabilities: int = _CAPABILITIES) -> None:
        self.heard = b""
        self.asked = threading.Event()
        """All of the packets were sent."""
        self._plugin = plugin.encode()
        self._packets = packets
        self._capabilities = capabilities
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        CA.issue_cert(LOOPBACK).configure_cert(self._context)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        with socket.create_server((LOOPBACK, 0)) as server:
            server.settimeout(_PATIENCE_SECONDS)
            serving = asyncio.create_task(asyncio.to_thread(self._serve, server))
            yield server.getsockname()[1]
            await serving

    def _serve(self, server: socket.socket) -> None:
        with suppress(OSError):
            line, _ = server.accept()
            with line:
                line.settimeout(_PATIENCE_SECONDS)
                self._converse(line)

    def _converse(self, line: socket.socket) -> None:
        greeting = b"\x0a8.4.0\0" + struct.pack("<I", 1) + b"saltsalt\0"
        greeting += struct.pack("<HBHHB", self._capabilities & 0xFFFF, 45, 2, self._capabilities >> 16, 21)
        greeting += bytes(10)
        greeting += b"saltsaltsalt\0" + self._plugin + b"\0"
        _write(line, 0, greeting)
        sequence, answer = _read(line)
        if len(answer) == 32:  # Protocol::SSLRequest
            with self._context.wrap_socket(line, server_side=True) as encrypted:
                self._ask(encrypted, *_read(encrypted))
        else:
            self._ask(line, sequence, answer)

    def _ask(self, line: socket.socket, sequence: int, answer: bytes) -> None:
        self.heard += answer
        for number, packet in enumerate(self._packets, 1):
            _write(line, sequence + 1, packet)
            if number == len(self._packets):
                self.asked.set()
            sequence, answer = _read(line)
            self.heard += answer


def _write(line: socket.socket, sequence: int, payload: bytes) -> None:
    line.sendall(struct.pack("<I", len(payload))[:3] + bytes([sequence % 256]) + payload)


def _read(line: socket.socket) -> tuple[int, bytes]:
    header = _exactly(line, 4)
    return header[3], _exactly(line, int.from_bytes(header[:3], "little"))


def _exactly(line: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = line.recv(count - len(data))
        if not more:
            raise ConnectionError
        data += more
    return data


def switch(plugin: str) -> bytes:
    return b"\xfe" + plugin.encode() + b"\0" + b"otherotherothersalt!" + b"\0"


ASKING: dict[str, tuple[str, list[bytes]]] = {
    "clear at once": ("mysql_clear_password", [switch("mysql_clear_password")]),
    "clear by a switch": ("caching_sha2_password", [switch("mysql_clear_password")]),
    "sha256 at once": ("sha256_password", [switch("sha256_password")]),
    "sha256 by a switch": ("mysql_native_password", [switch("sha256_password")]),
    "dialog": ("mysql_native_password", [switch("dialog")]),
    "an old server's": ("mysql_native_password", [b"\xfe"]),
    "full exchange": ("caching_sha2_password", [b"\x01\x04"]),
    "full exchange after a switch": ("mysql_native_password", [switch("caching_sha2_password"), b"\x01\x04"]),
    "unknown exchange": ("caching_sha2_password", [b"\x01\x02"]),
}


@pytest.mark.parametrize("policy", UNPROVEN[:2])
@pytest.mark.parametrize("asking", ASKING)
async def test_mysql_asks_for_the_password(asking: str, policy: TlsPolicy) -> None:
    plugin, packets = ASKING[asking]
    server = FakeMySQL(plugin, *packets)
    async with server.listening() as port:
        await log_in(Engine.MYSQL, port, policy)
    assert server.asked.is_set()
    # Nor is it asked for a key to encrypt the password with: the key would be the thief's own.
    assert SECRET.encode() not in server.heard
    assert not server.heard.endswith((b"\x01", b"\x02"))


@pytest.mark.parametrize("asking", ["clear at once", "clear by a switch", "sha256 by a switch"])
async def test_what_was_registered_before_gives_no_clear_password(asking: str) -> None:
    plugin, packets = ASKING[asking]
    server = FakeMySQL(plugin, *packets)
    async with server.listening() as port:
        await log_in(Engine.MYSQL, port, TlsPolicy(mode=TlsMode.PREFER))
    assert server.asked.is_set()
    assert SECRET.encode() not in server.heard


async def test_a_mysql_without_plugins_gets_no_answer() -> None:
    """The driver would send the proof of servers before 5.5, which reveals the password."""
    server = FakeMySQL("mysql_native_password", b"\xfe", capabilities=_CAPABILITIES & ~_PLUGIN_AUTH)
    async with server.listening() as port:
        assert "no authentication plugins" in await log_in(Engine.MYSQL, port, PLAIN)
    assert server.heard == b""


@pytest.mark.parametrize("policy", PROVEN)
async def test_a_proven_mysql_gets_it(policy: TlsPolicy) -> None:
    server = FakeMySQL("caching_sha2_password", b"\x01\x04")
    async with server.listening() as port:
        await log_in(Engine.MYSQL, port, policy)
    assert SECRET.encode() in server.heard
