"""PostgreSQL's connections are encrypted where the server can, without asking each time."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg
import pytest
import trustme

from app.engines.postgres import encryption
from app.engines.postgres.encryption import Encryption
from app.local.ports import LOOPBACK
from tests.engines.harness import EngineHost

POSTGRES = pytest.mark.parametrize("engine_server", ["postgres"], indirect=True, scope="session")
pytestmark = POSTGRES
_SSL_REQUEST = struct.pack("!ll", 8, 80877103)


class Front:
    """In front of a server without TLS: with it, where `tls` says so."""

    def __init__(self, host: EngineHost, context: ssl.SSLContext) -> None:
        self.tls = True
        self.plain_refused = False
        self.asked = 0
        self.port = 0
        self._address = host.administrator
        self._context = context

    def options(self, **others: Any) -> dict[str, Any]:
        known = {"user": self._address.user, "password": self._address.password, "database": "postgres"}
        return {"host": LOOPBACK, "port": self.port, **known, **others}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            first = await reader.readexactly(8)
            encrypted = False
            if first == _SSL_REQUEST:
                self.asked += 1
                writer.write(b"S" if self.tls else b"N")
                encrypted = self.tls
                if encrypted:
                    await writer.start_tls(self._context)
                first = await reader.readexactly(8)
            if self.plain_refused and not encrypted:
                fields = b"SFATAL\0C28000\0Mno pg_hba.conf entry, no encryption\0\0"
                writer.write(b"E" + struct.pack("!l", len(fields) + 4) + fields)
            else:
                await self._pass_on(first, reader, writer)
        writer.transport.abort()

    async def _pass_on(self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection(self._address.host, self._address.port)
        forth.write(first)
        pumps = [asyncio.create_task(_pump(reader, forth)), asyncio.create_task(_pump(back, writer))]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        forth.transport.abort()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while octets := await source.read(65_536):
        target.write(octets)
        await target.drain()


@asynccontextmanager
async def front(host: EngineHost) -> AsyncIterator[Front]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    made = Front(host, context)
    server = await asyncio.start_server(made.serve, LOOPBACK, 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


async def is_encrypted(ways: Encryption, **options: Any) -> bool:
    connection = await ways.connect(**options)
    assert await connection.fetchval("SELECT 1") == 1
    encrypted = connection._transport.get_extra_info("ssl_object") is not None
    await connection.close()
    return encrypted


async def test_encrypted_where_the_server_can(host: EngineHost) -> None:
    async with front(host) as server:
        ways = Encryption()
        assert [await is_encrypted(ways, **server.options()) for _ in range(3)] == [True] * 3


async def test_not_asked_again_where_it_cannot(host: EngineHost) -> None:
    async with front(host) as server:
        server.tls, ways = False, Encryption()
        assert [await is_encrypted(ways, **server.options()) for _ in range(3)] == [False] * 3
        assert server.asked == 1


async def test_what_the_server_changes_is_found_out(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    async with front(host) as server:
        server.tls, ways = False, Encryption()
        assert not await is_encrypted(ways, **server.options())
        server.tls = server.plain_refused = True
        assert await is_encrypted(ways, **server.options())
        server.tls = server.plain_refused = False
        assert not await is_encrypted(ways, **server.options())
        # Where both are taken, after a while.
        server.tls = True
        assert not await is_encrypted(ways, **server.options())
        monkeypatch.setattr(encryption, "_UNENCRYPTED_SECONDS", 0.0)
        ways = Encryption()
        server.tls = False
        assert not await is_encrypted(ways, **server.options())
        server.tls = True
        assert await is_encrypted(ways, **server.options())


async def test_a_refused_login_is_tried_once(host: EngineHost) -> None:
    async with front(host) as server:
        server.tls, ways = False, Encryption()
        await is_encrypted(ways, **server.options())
        with pytest.raises(asyncpg.InvalidPasswordError):
            await ways.connect(**server.options(password="wrong"))
        assert server.asked == 1


async def test_what_the_environment_demands_is_kept_to(host: EngineHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSSLMODE", "require")
    async with front(host) as server:
        ways = Encryption()
        assert await is_encrypted(ways, **server.options())
        server.tls = False
        with pytest.raises(ConnectionError):
            await ways.connect(**server.options())
