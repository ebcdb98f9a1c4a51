"""An S3 server for the tests of the store, and a bucket for each."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio

from app.backups.storage.store import BackupStore
from app.core.secrets import SecretBox
from app.core.settings import Settings
from tests.support.backups import BOX, folder_store
from tests.support.object_stores import MotoService, S3Server, s3_server
from tests.support.store_faults import StoreFaults, store_faults
from tests.support.waiting import LIMIT_SECONDS


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

    def store(self, *, timeout_seconds: float = 20, box: SecretBox = BOX) -> BackupStore:
        settings = Settings(backup_store=f"s3://{self.name}/some/prefix", backup_store_timeout_seconds=timeout_seconds)
        return BackupStore.from_settings(settings, box)


@pytest_asyncio.fixture
async def bucket(moto_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BucketOfTest]:
    async with store_faults(moto_server.port) as way, httpx.AsyncClient(timeout=LIMIT_SECONDS) as client:
        for name, value in {**moto_server.environ, "AWS_ENDPOINT_URL": way.url}.items():
            monkeypatch.setenv(name, value)
        made = BucketOfTest(moto_server, f"b-{uuid4()}", way)
        (await client.put(f"{moto_server.url}/{made.name}")).raise_for_status()
        yield made


StoreOfBox = Callable[[SecretBox], BackupStore]


@pytest.fixture(params=["folder", "s3"])
def any_store_of(request: pytest.FixtureRequest, tmp_path: Path) -> StoreOfBox:
    """A store of each kind, opened with some secret keys."""
    if request.param == "folder":
        return lambda box: folder_store(tmp_path, box)
    made: BucketOfTest = request.getfixturevalue("bucket")
    return lambda box: made.store(box=box)


@pytest.fixture
def any_store(any_store_of: StoreOfBox) -> BackupStore:
    """A store of each kind."""
    return any_store_of(BOX)
