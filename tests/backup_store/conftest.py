"""An S3 server for the tests of the store, and a bucket for each."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio

from app.backup_store.store import BackupStore
from app.core.settings import Settings
from tests.support.backups import BOX
from tests.support.object_stores import MotoService, S3Server, s3_server
from tests.support.store_faults import StoreFaults, store_faults


@pytest_asyncio.fixture(scope="session")
async def moto_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[S3Server]:
    async with s3_server(MotoService(tmp_path_factory.mktemp("moto"))) as server:
        yield server


@dataclass(frozen=True)
class BucketOfTest:
    """A bucket, and the way to it on which requests can fail."""

    server: S3Server
    name: str
    way: StoreFaults

    def store(self, prefix: str = "some/prefix", timeout_seconds: float = 20) -> BackupStore:
        url = f"s3://{self.name}/{prefix}"
        return BackupStore.from_settings(Settings(backup_store=url, backup_store_timeout_seconds=timeout_seconds), BOX)


@pytest_asyncio.fixture
async def bucket(moto_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BucketOfTest]:
    async with store_faults(moto_server.port) as way, httpx.AsyncClient() as client:
        for name, value in {**moto_server.environ, "AWS_ENDPOINT_URL": way.url}.items():
            monkeypatch.setenv(name, value)
        made = BucketOfTest(moto_server, f"b-{uuid4()}", way)
        (await client.put(f"{moto_server.url}/{made.name}")).raise_for_status()
        yield made


@pytest.fixture(params=["folder", "s3"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> BackupStore:
    """A store of each kind."""
    if request.param == "folder":
        return BackupStore.from_settings(Settings(backup_store=tmp_path.as_uri()), BOX)
    return request.getfixturevalue("bucket").store()  # type: ignore[no-any-return]
