"""The sides of `benchmarks.backups`: a client of the API, PostgreSQL's own tools, and our load alone."""

import asyncio
import os
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

import asyncpg
import httpx

from app.backups.storage.store import BackupStore
from app.contracts.base import Engine
from app.core import ids
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.engines.base import AdminAddress, EngineAdapter, EngineLimits, Tenant
from app.engines.postgres.dumps.tools import DumpTools
from app.engines.registry import open_adapter
from app.engines.tls import PLAIN
from app.local.home import Home
from app.local.stack_file import StackFile, StackHost

_MAJOR = 18
"""Of the embedded server."""
_WAIT = "wait=true&timeout=120"
_BUSY = "CREATE TABLE busy AS SELECT n AS id, 0 AS value FROM generate_series(1, 100) n"


class Client:
    """A team's, through the API."""

    def __init__(self, stack: StackFile) -> None:
        headers = {"Authorization": f"Bearer {stack.api_key}"}
        self._http = httpx.AsyncClient(base_url=f"{stack.api_url}/api/v1", headers=headers, timeout=200)

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def make(self, statements: Sequence[str]) -> dict[str, Any]:
        """A database with what the statements make, and a table of the tenant's work."""
        made = await self._change("POST", f"/databases?{_WAIT}", _database())
        connection = await asyncpg.connect(made["connection_string"])
        try:
            for statement in (*statements, _BUSY, "VACUUM ANALYZE"):
                await connection.execute(statement, timeout=1200)
        finally:
            await connection.close()
        return made

    async def back_up(self, made: dict[str, Any]) -> dict[str, Any]:
        backup = await self._change("POST", f"/databases/{made['uuid']}/backups?{_WAIT}", {})
        if backup["status"] != "completed":
            raise RuntimeError(f"the backup is {backup['status']}: {backup['error']}")
        return backup

    async def prove(self, backup: dict[str, Any]) -> float:
        """The seconds of the load and the comparison, as the proof says."""
        tested = await self._change("POST", f"/backups/{backup['uuid']}/restore_tests?{_WAIT}")
        if tested["proof"]["status"] != "proven":
            raise RuntimeError(f"the proof is {tested['proof']}")
        seconds: float = tested["proof"]["restore_seconds"]
        return seconds

    async def clone(self, made: dict[str, Any]) -> dict[str, Any]:
        source = {"database_uuid": made["uuid"], "pause_source": True}
        return await self._change("POST", f"/databases?{_WAIT}", _database() | {"source": source})

    async def delete(self, made: dict[str, Any]) -> None:
        await self._change("DELETE", f"/databases/{made['uuid']}")

    async def _change(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        answer = await self._http.request(method, path, json=body, headers={"Idempotency-Key": str(uuid.uuid4())})
        if answer.status_code not in (200, 201):
            raise RuntimeError(f"{method} {path} was answered with {answer.status_code}: {answer.text}")
        data: dict[str, Any] = answer.json()["data"]
        return data


class Tools:
    """`pg_dump | zstd` and `zstd | pg_restore`, as the host's administrator."""

    def __init__(self, host: StackHost, folder: Path) -> None:
        self._host = host
        self._file = folder / "dump.zst"

    async def settle(self, database: str) -> None:
        """What is measured next finds the database in memory, and no disk that still writes what was before it."""
        await _shell(f"pg_dump -Fc -Z none '{self._of(database)}' > {os.devnull}; sync")

    async def dump(self, database: str) -> float:
        own = self._of(database)
        return await _shell(f"pg_dump -Fc -Z none '{own}' | zstd -1 -q -f -o {self._file}; sync {self._file}")

    async def restore(self) -> float:
        """Of the last dump, into a bare database."""
        await bare_database(self._host.admin_dsn)
        return await _shell(f"zstd -dcq {self._file} | pg_restore --no-owner --no-acl -d '{self._of('bare')}'")

    def _of(self, database: str) -> str:
        return urlunsplit(urlsplit(self._host.admin_dsn)._replace(path=f"/{database}"))


class Loads:
    """What a restore does between the empty database and the comparison: the backup read from the store, opened, and
    loaded as its tenant."""

    def __init__(self, adapter: EngineAdapter, store: BackupStore, tenant: Tenant) -> None:
        self._adapter = adapter
        self._store = store
        self._tenant = tenant

    @classmethod
    @asynccontextmanager
    async def opened(cls, host: StackHost, home: Path) -> AsyncIterator["Loads"]:
        parts = urlsplit(host.admin_dsn)
        user, password = parts.username or "", parts.password or ""
        address = AdminAddress(host=host.host, port=host.port, user=user, password=password, tls=PLAIN)
        adapter = open_adapter(Engine(host.engine), address)
        tenant = Tenant(name=ids.engine_name(), password=ids.engine_password(), marker=ids.marker(uuid.uuid4()))
        store = BackupStore.from_settings(Settings(home=home), SecretBox.from_setting(Home(home).secret_keys()))
        await adapter.create(tenant, EngineLimits(connections=5))
        try:
            yield cls(adapter, store, tenant)
        finally:
            await adapter.destroy(tenant)
            await adapter.close()

    async def load(self, backup: str) -> float:
        await self._adapter.clear(self._tenant)
        began = time.perf_counter()
        key = await self._store.stored_key(UUID(backup))
        manifest = await self._store.get_manifest(UUID(backup), key)
        await self._adapter.load(self._tenant, manifest.format, self._store.read(manifest, key))
        return time.perf_counter() - began


async def bare_database(dsn: str) -> None:
    admin = await asyncpg.connect(dsn)
    try:
        await admin.execute("DROP DATABASE IF EXISTS bare")
        await admin.execute("CREATE DATABASE bare TEMPLATE template0")
    finally:
        await admin.close()


async def shares_blocks(folder: Path) -> bool:
    """Whether the file system there has reflinks."""
    source = folder / "reflink"
    source.write_bytes(b"reflink" * 1000)
    command = ["cp", "--reflink=always", str(source), f"{source}-copy"]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    return await process.wait() == 0


def _database() -> dict[str, Any]:
    return {"name": f"benchmark-{uuid.uuid4().hex[:8]}", "db_type": "postgres", "plan": "pro"}


async def _shell(command: str) -> float:
    """Seconds that the command took, with the programs that the service finds for its dumps."""
    programs, _ = await DumpTools().folder(_MAJOR)
    environ = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    began = time.perf_counter()
    process = await asyncio.create_subprocess_shell(command, env=environ)
    if await process.wait() != 0:
        raise RuntimeError(f"{command} failed")
    return time.perf_counter() - began
