"""TLS in front of a server that was built without it, and certificates for servers that have it."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import trustme

from app.local.ports import LOOPBACK
from tests.support.proxy import both_ways

SSL_REQUEST = struct.pack("!ll", 8, 80877103)


def pem(ca: trustme.CA) -> str:
    return ca.cert_pem.bytes().decode()


def written(ca: trustme.CA, folder: Path, name: str) -> dict[str, Path]:
    """A certificate of this name, its key and its CA as files that every account may read."""
    folder.mkdir(mode=0o755, parents=True)
    for parent in folder.parents[:3]:
        parent.chmod(parent.stat().st_mode | 0o011)
    issued = ca.issue_cert(name)
    files = {kind: folder / f"{kind}.pem" for kind in ("ca", "cert", "key")}
    files["ca"].write_bytes(ca.cert_pem.bytes())
    files["cert"].write_bytes(issued.cert_chain_pems[0].bytes())
    files["key"].write_bytes(issued.private_key_pem.bytes())
    for file in files.values():
        file.chmod(0o644)
    return files


class PostgresFront:
    """Answers PostgreSQL's SSLRequest (section 54.2.11 of its documentation) and passes everything on to a server that
    can't."""

    def __init__(self, target_port: int, certificate: trustme.LeafCert | None) -> None:
        self.port = 0
        self.encrypted = 0
        self.plain = 0
        """The number of logins without TLS."""
        self._target_port = target_port
        self._context = None
        if certificate is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            certificate.configure_cert(self._context)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            first = await reader.readexactly(8)
            if first == SSL_REQUEST:
                writer.write(b"S" if self._context else b"N")
                if self._context is not None:
                    await writer.start_tls(self._context)
                first = await reader.readexactly(8)
            self.encrypted += first != SSL_REQUEST and writer.get_extra_info("ssl_object") is not None
            self.plain += writer.get_extra_info("ssl_object") is None
            back, forth = await asyncio.open_connection(LOOPBACK, self._target_port)
            forth.write(first)
            try:
                await both_ways((reader, forth), (back, writer))
            finally:
                forth.transport.abort()
        writer.transport.abort()


@asynccontextmanager
async def postgres_front(target_port: int, certificate: trustme.LeafCert | None) -> AsyncIterator[PostgresFront]:
    """Without a certificate it offers no TLS."""
    front = PostgresFront(target_port, certificate)
    server = await asyncio.start_server(front.serve, LOOPBACK, 0)
    front.port = server.sockets[0].getsockname()[1]
    try:
        yield front
    finally:
        server.close()
