"""Caddy in front of several APIs, as an operator has a proxy there.

Its configuration stays as it is: a change of it breaks connections that were just made, and their requests with them.
What it asks before it sends requests to an API answers as the operator, here the test, wishes.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import msgspec

from app.local.ports import LOOPBACK
from app.local.processes import Command
from app.local.services import Service, server_environ
from tests.support.ports import free_port
from tests.support.waiting import until


class Gate:
    """Says on an address of its own whether an API is in the proxy."""

    def __init__(self) -> None:
        self.is_open = True
        self._asked = 0
        """How often the proxy was told so since it changed."""

    async def set(self, is_open: bool) -> None:
        """Returns when the proxy has heard of it."""
        self.is_open, self._asked = is_open, 0
        await until(lambda: self._asked >= 2)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            status = b"200 OK" if self.is_open else b"503 Service Unavailable"
            writer.write(b"HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % status)
            await writer.drain()
            self._asked += 1
        writer.close()


class CaddyService(Service):
    """Passes requests to the APIs on `port` of these addresses in turn."""

    def __init__(self, folder: Path, addresses: list[str]) -> None:
        super().__init__("proxy", free_port(), folder / "proxy.log")
        self.api_port = free_port()
        self.gates = {address: Gate() for address in addresses}
        self._gate_port = free_port()
        self._folder = folder

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @asynccontextmanager
    async def gates_answer(self) -> AsyncIterator[None]:
        """While the proxy runs."""
        async with AsyncExitStack() as stack:
            for address, gate in self.gates.items():
                await stack.enter_async_context(await asyncio.start_server(gate.answer, address, self._gate_port))
            yield

    def command(self) -> Command:
        config = self._folder / "proxy.json"
        config.write_bytes(msgspec.json.encode(self._config()))
        program = Path(sys.executable).with_name("caddy")
        environ = server_environ() | {"HOME": str(self._folder)}
        return Command(argv=(str(program), "run", "--config", str(config)), log=self.log, environ=environ)

    async def is_ready(self) -> bool:
        try:
            async with httpx.AsyncClient(trust_env=False) as http:
                return (await http.get(f"{self.url}/health/ready")).status_code == 200
        except httpx.TransportError:
            return False

    def _config(self) -> dict[str, object]:
        proxy = {
            "handler": "reverse_proxy",
            "upstreams": [{"dial": f"{address}:{self.api_port}"} for address in self.gates],
            "load_balancing": {"selection_policy": {"policy": "round_robin"}},
            # The test answers, which may stall: an API is taken out by its word, and not by its silence.
            "health_checks": {"active": {"uri": "/", "port": self._gate_port, "interval": "200ms", "timeout": "2m"}},
        }
        server = {
            "listen": [f"{LOOPBACK}:{self.port}"],
            "automatic_https": {"disable": True},
            "routes": [{"handle": [proxy]}],
        }
        return {"admin": {"disabled": True}, "apps": {"http": {"servers": {"api": server}}}}
