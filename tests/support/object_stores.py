"""S3 servers for tests: moto's, and seaweedfs, which has Object Lock."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from app.local.ports import LOOPBACK
from app.local.processes import Command
from app.local.services import Service, server_environ, start
from tests.support.ports import free_port

USER, SECRET = "a-test", "a-secret-of-tests"


@dataclass(frozen=True)
class S3Server:
    """A running S3 server."""

    url: str
    environ: dict[str, str] = field(repr=False)
    """What a client of it needs in its environment."""

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


class MotoService(Service):
    """Keeps everything in memory, and believes any credentials."""

    def __init__(self, folder: Path) -> None:
        super().__init__("moto", free_port(), folder / "moto.log")

    def command(self) -> Command:
        argv = (sys.executable, "-P", "-m", "moto.server", "-H", LOOPBACK, "-p", str(self.port))
        return Command(argv=argv, log=self.log, environ=server_environ())

    async def is_ready(self) -> bool:
        return await _answers(self.port, "/moto-api/")


class SeaweedService(Service):
    """One process with all of its parts, on ports of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__("seaweedfs", free_port(), folder / "seaweed.log")
        self._folder = folder
        self._ports = {part: free_port() for part in ("master", "volume", "filer")}

    async def prepare(self) -> None:
        (self._folder / "data").mkdir(parents=True, exist_ok=True)
        credentials = [{"accessKey": USER, "secretKey": SECRET}]
        identity = {"name": USER, "credentials": credentials, "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
        (self._folder / "s3.json").write_text(json.dumps({"identities": [identity]}))

    def command(self) -> Command:
        program = Path(sys.executable).parent / "weed"
        ports = [f"-{part}.port={port}" for part, port in self._ports.items()]
        grpc = [f"-{part}.port.grpc={free_port()}" for part in (*self._ports, "s3")]
        argv = (
            str(program),
            "server",
            f"-dir={self._folder / 'data'}",
            f"-ip={LOOPBACK}",
            # Each bucket takes several.
            "-volume.max=500",
            "-master.volumeSizeLimitMB=1000",
            "-s3",
            f"-s3.port={self.port}",
            f"-s3.config={self._folder / 's3.json'}",
            *ports,
            *grpc,
        )
        return Command(argv=argv, log=self.log, environ={**server_environ(), "HOME": str(self._folder)})

    async def is_ready(self) -> bool:
        # It listens for seconds before it can write.
        return await _answers(self.port, "/status")


@asynccontextmanager
async def s3_server(service: Service) -> AsyncIterator[S3Server]:
    await service.prepare()
    child = await start(service)
    url = f"http://{LOOPBACK}:{service.port}"
    try:
        yield S3Server(
            url,
            {
                "AWS_ENDPOINT_URL": url,
                "AWS_ACCESS_KEY_ID": USER,
                "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_REGION": "us-east-1",
                "AWS_DEFAULT_REGION": "us-east-1",
            },
        )
    finally:
        await child.stop(timeout=5)


async def _answers(port: int, path: str) -> bool:
    try:
        async with httpx.AsyncClient() as client:
            answer = await client.get(f"http://{LOOPBACK}:{port}{path}", timeout=1)
            return answer.is_success
    except httpx.HTTPError:
        return False
