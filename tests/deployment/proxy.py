"""The proxy of docker-compose.yml, with its own Caddyfile and environment, in front of a server on the loopback
interface."""

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from app.local.ports import LOOPBACK
from app.local.processes import Command
from app.local.services import Service, server_environ, start
from tests.deployment import compose
from tests.support.ports import free_port

CADDY = Path(sys.executable).with_name("caddy")
CADDYFILE = compose.ROOT / "deploy/proxy/Caddyfile"
HOST = "headwater.internal"
"""A name for which Caddy asks its own authority: no ACME server signs one of that domain."""


@dataclass(frozen=True)
class Proxy:
    folder: Path
    http_port: int
    port: int
    temporal_ui_port: int
    host: str = HOST

    @property
    def origin(self) -> str:
        return f"https://{self.host}:{self.port}"

    @property
    def authority(self) -> Path:
        """The certificate of the proxy's own authority."""
        return self.folder / "data/caddy/pki/authorities/local/root.crt"

    def tls(self, *protocols: str) -> ssl.SSLContext:
        """A client's, which believes that authority alone."""
        context = ssl.create_default_context(cafile=str(self.authority))
        if protocols:
            context.set_alpn_protocols(protocols)
        return context

    def client(self, address: str = LOOPBACK, base_url: str | None = None) -> httpx.AsyncClient:
        """Somebody at that address, of the loopback interface's."""
        way = _Loopback(verify=self.tls(), local_address=address)
        return httpx.AsyncClient(base_url=base_url or self.origin, transport=way, timeout=30)


class _Loopback(httpx.AsyncHTTPTransport):
    """Reaches every name on this machine, by its name in the handshake and in `Host`."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.extensions = {**request.extensions, "sni_hostname": request.url.host}
        request.url = request.url.copy_with(host=LOOPBACK)
        return await super().handle_async_request(request)


class _Caddy(Service):
    def __init__(self, proxy: Proxy, environ: dict[str, str]) -> None:
        super().__init__("proxy", proxy.port, proxy.folder / "proxy.log")
        self._proxy = proxy
        self._environ = environ

    def command(self) -> Command:
        argv = (str(CADDY), "run", "--config", str(CADDYFILE), "--adapter", "caddyfile")
        return Command(argv=argv, log=self.log, environ=self._environ)

    async def is_ready(self) -> bool:
        """Whether it has its certificate."""
        try:
            _, writer = await asyncio.open_connection(
                LOOPBACK, self.port, ssl=self._proxy.tls(), server_hostname=self._proxy.host
            )
        except OSError:
            return False
        writer.close()
        return True


def new_proxy(folder: Path) -> Proxy:
    """It doesn't run yet: others have to know where it will."""
    return Proxy(folder, http_port=free_port(), port=free_port(), temporal_ui_port=free_port())


@asynccontextmanager
async def running(proxy: Proxy, upstream_port: int, **given: str) -> AsyncIterator[None]:
    """In front of that port, for the block. `given` are variables of `.env`."""
    ports = {"PUBLIC_HTTP_PORT": str(proxy.http_port), "PUBLIC_HTTPS_PORT": str(proxy.port), "PUBLIC_HOST": proxy.host}
    upstream = f"{LOOPBACK}:{upstream_port}"
    environ: dict[str, Any] = {
        **server_environ(),
        **compose.environment(compose.services()["proxy"], ports | given),
        # What differs outside of a container.
        "XDG_DATA_HOME": str(proxy.folder / "data"),
        "XDG_CONFIG_HOME": str(proxy.folder / "config"),
        "HOME": str(proxy.folder),
        "PROXY_BIND": LOOPBACK,
        "TEMPORAL_UI_PORT": str(proxy.temporal_ui_port),
        "API_UPSTREAM": upstream,
        "TEMPORAL_UI_UPSTREAM": upstream,
    }
    process = await start(_Caddy(proxy, environ))
    try:
        yield
    finally:
        await process.stop(timeout=2)
