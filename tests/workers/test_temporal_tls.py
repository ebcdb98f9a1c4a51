"""Temporal over TLS, over mutual TLS, and with an API key: what the settings say holds for every process."""

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trustme
from temporalio.service import RPCError

from app.core.settings import InvalidSettings, Settings
from app.core.temporal import connect_from_settings
from app.local.ports import LOOPBACK
from app.local.temporal import TemporalService
from tests.cli.command import Headwater
from tests.support.ports import free_port
from tests.support.proxy import both_ways
from tests.support.waiting import until

OURS, CLIENTS = trustme.CA(), trustme.CA()


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    issued = CLIENTS.issue_cert("headwater")
    OURS.cert_pem.write_to_path(tmp_path / "ca.pem")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    return {kind: str(tmp_path / f"{kind}.pem") for kind in ("ca", "cert", "key")}


@asynccontextmanager
async def encrypted(temporal: TemporalService, name: str, *, mutual: bool) -> AsyncIterator[str]:
    """The address of TLS before that server, which asks for a client's certificate where it is mutual."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["h2"])
    OURS.issue_cert(name).configure_cert(context)
    if mutual:
        context.verify_mode = ssl.CERT_REQUIRED
        CLIENTS.configure_trust(context)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            back, forth = await asyncio.open_connection(LOOPBACK, temporal.port)
            await both_ways((reader, forth), (back, writer))
            forth.transport.abort()
        writer.transport.abort()

    server = await asyncio.start_server(serve, LOOPBACK, 0, ssl=context)
    try:
        yield f"{LOOPBACK}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def settings(**given: str) -> Settings:
    return Settings.load({f"HEADWATER_TEMPORAL_{name}": value for name, value in given.items()})


async def answers(**given: str) -> bool:
    try:
        client = await connect_from_settings(settings(**given))
        return await client.service_client.check_health()
    except (RPCError, RuntimeError):
        return False


async def test_the_servers_certificate_is_verified(temporal_server: TemporalService, files: dict[str, str]) -> None:
    async with encrypted(temporal_server, LOOPBACK, mutual=False) as address:
        assert await answers(ADDRESS=address, TLS_CA_FILE=files["ca"])
        assert not await answers(ADDRESS=address, TLS="true")
        assert not await answers(ADDRESS=address)
    async with encrypted(temporal_server, "temporal.example", mutual=False) as address:
        assert not await answers(ADDRESS=address, TLS_CA_FILE=files["ca"])
        assert await answers(ADDRESS=address, TLS_CA_FILE=files["ca"], TLS_SERVER_NAME="temporal.example")
    assert not await answers(ADDRESS=temporal_server.address, TLS="true")


async def test_mutual_tls(temporal_server: TemporalService, files: dict[str, str]) -> None:
    ours = {"TLS_CERT_FILE": files["cert"], "TLS_KEY_FILE": files["key"]}
    async with encrypted(temporal_server, LOOPBACK, mutual=True) as address:
        assert await answers(ADDRESS=address, TLS_CA_FILE=files["ca"], **ours)
        assert not await answers(ADDRESS=address, TLS_CA_FILE=files["ca"])


async def test_the_command_goes_the_same_way(
    temporal_server: TemporalService, files: dict[str, str], control_dsn: str
) -> None:
    async with encrypted(temporal_server, LOOPBACK, mutual=True) as address:
        known = {"CONTROL_DSN": control_dsn, "TEMPORAL_ADDRESS": address, "TEMPORAL_TLS_CA_FILE": files["ca"]}
        ours = {"TEMPORAL_TLS_CERT_FILE": files["cert"], "TEMPORAL_TLS_KEY_FILE": files["key"]}
        assert isinstance(await Headwater(known | ours).json("workflows", "open"), list)
        assert "Temporal" in await Headwater(known).refusal("workflows", "open")


async def test_an_api_key_goes_with_every_request_over_tls_alone(files: dict[str, str], tmp_path: Path) -> None:
    issued, sink, port = OURS.issue_cert(LOOPBACK), tmp_path / "headers", free_port()
    issued.cert_chain_pems[0].write_to_path(tmp_path / "server.pem")
    issued.private_key_pem.write_to_path(tmp_path / "server.key")
    program = Path(sys.executable).parent / "granian"
    server = await asyncio.create_subprocess_exec(
        *(program, "--interface", "asgi", "--http", "2", "--host", LOOPBACK, "--port", str(port)),
        *("--ssl-certificate", tmp_path / "server.pem", "--ssl-keyfile", tmp_path / "server.key"),
        "tests.support.header_sink:app",
        env={"HEADER_SINK": str(sink), "PATH": "/usr/bin:/bin"},
    )
    try:

        async def asked() -> bool:
            assert not await answers(ADDRESS=f"{LOOPBACK}:{port}", TLS_CA_FILE=files["ca"], API_KEY="the-key")
            return await asyncio.to_thread(sink.exists)

        await until(asked)
    finally:
        server.terminate()
        await server.wait()
    headers = (await asyncio.to_thread(sink.read_text)).splitlines()
    assert "authorization: Bearer the-key" in headers


async def test_an_api_key_never_crosses_in_the_clear(temporal_server: TemporalService) -> None:
    assert await answers(ADDRESS=temporal_server.address)
    assert not await answers(ADDRESS=temporal_server.address, API_KEY="the-key")


def test_what_cannot_be(files: dict[str, str]) -> None:
    with pytest.raises(InvalidSettings, match="go together"):
        settings(TLS_CERT_FILE=files["cert"])
    with pytest.raises(InvalidSettings, match="TLS_CA_FILE: there is no such file"):
        settings(TLS_CA_FILE=files["ca"] + ".not")
