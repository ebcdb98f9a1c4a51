"""Something else happens to a database between two steps of what is brought, or read, there."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest

from activities.restores import RestoreActivitiesOnHosts
from app.backups.restores import in_place, records
from app.backups.restores.faults import SourceUnavailable
from app.backups.restores.transfers import Transfers
from app.backups.storage.errors import BackupMissing
from app.contracts.backups import BackupKind
from app.databases import access
from app.databases.passwords import tenant_of
from app.databases.records import DatabaseRecord, find_for_update
from app.engines.base import EngineAdapter
from app.engines.dumping import Dump, DumpFormat
from app.hosts.adapters import Adapters
from app.hosts.records import version_of
from app.hosts.slots import HostSlots
from app.quotas.plans import DEFAULT_PLANS
from app.store.locks import LockLost
from app.store.session import fetch, transaction
from tests.backups.support import add_backup
from tests.quotas.bench import REGION, Bench, bench
from tests.restores.support import session
from tests.servers import RunningServer
from tests.support.answers import body_of
from tests.support.backups import any_store
from tests.support.client import Caller
from tests.support.waiting import until

Meanwhile = Callable[[], Awaitable[None]]


class BeforeDumps:
    """A host's adapter whose dumps begin after `meanwhile`."""

    def __init__(self, adapter: EngineAdapter, meanwhile: Meanwhile) -> None:
        self._adapter = adapter
        self._meanwhile = meanwhile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._adapter, name)

    @asynccontextmanager
    async def dumping(self, *arguments: Any, **named: Any) -> AsyncIterator[Dump]:
        await self._meanwhile()
        async with self._adapter.dumping(*arguments, **named) as dump:
            yield dump


class AdaptersBeforeDumps:
    def __init__(self, adapters: Adapters, meanwhile: Meanwhile) -> None:
        self._adapters = adapters
        self._meanwhile = meanwhile

    async def of_host(self, host_id: int) -> Any:
        return BeforeDumps(await self._adapters.of_host(host_id), self._meanwhile)


@pytest.mark.parametrize("opened", [False, True], ids=["closed", "closed and opened"])
async def test_no_clone_is_made_of_what_is_closed_before_its_dump(
    control_dsn: str, postgres_server: RunningServer, *, opened: bool
) -> None:
    async with bench(control_dsn, postgres_server) as on_bench:
        caller = await on_bench.api.caller()
        source = UUID((await _made(on_bench, caller, "source"))["uuid"])
        await _made(on_bench, caller, "clone", source={"database_uuid": str(source)})
        [restoration] = await fetch("SELECT uuid FROM restorations")

        async def meanwhile() -> None:
            await _close(source)
            if opened:
                await _open(source)

        overtaken: Any = AdaptersBeforeDumps(on_bench.adapters, meanwhile)
        with pytest.raises(SourceUnavailable):
            await _transfers(on_bench, overtaken).fill(restoration["uuid"], None)
        if not opened:
            await _open(source)
        assert await _loaded() is None
        await _transfers(on_bench, on_bench.adapters).fill(restoration["uuid"], None)
        assert await _loaded() is not None


class AdaptersAfter:
    """Adapters that are there after `meanwhile`."""

    def __init__(self, adapters: Adapters, meanwhile: Meanwhile) -> None:
        self._adapters = adapters
        self._meanwhile = meanwhile

    async def of_host(self, host_id: int) -> EngineAdapter:
        await self._meanwhile()
        return await self._adapters.of_host(host_id)


async def test_what_another_attempt_has_made_whole_is_not_emptied(
    control_dsn: str, mysql_server: RunningServer
) -> None:
    """Where databases can't be exchanged: this attempt stopped in its exchange, and lost its lock meanwhile."""
    async with bench(control_dsn, mysql_server) as on_bench:
        caller = await on_bench.api.caller()
        made = await _made(on_bench, caller, "restored", db_type="mysql")
        async with session(made) as tenant:
            await tenant.execute("CREATE TABLE visits (id integer PRIMARY KEY)")
        record = await on_bench.record(made)
        restoration = await _backed_up_first(on_bench, caller, record)

        async def meanwhile() -> None:
            await records.note_whole(restoration, record.host_id, record.engine_name)

        overtaken: Any = AdaptersAfter(on_bench.adapters, meanwhile)
        with pytest.raises(LockLost):
            await _transfers(on_bench, overtaken).exchange(restoration, None)
        await _transfers(on_bench, on_bench.adapters).exchange(restoration, None)
        adapter = await on_bench.adapters.of_host(record.host_id)
        assert "visits" in [one.name for one in await adapter.contents(tenant_of(record, on_bench.box))]


class StoreAfter:
    """A store that has nothing of any backup, and says so after `meanwhile`."""

    def __init__(self, meanwhile: Meanwhile) -> None:
        self._meanwhile = meanwhile

    async def stored_key(self, _: UUID) -> Any:
        await self._meanwhile()
        raise BackupMissing("there is no such backup")


async def test_a_scratch_lasts_however_long_its_load_takes(control_dsn: str, postgres_server: RunningServer) -> None:
    async with bench(control_dsn, postgres_server) as on_bench:
        caller = await on_bench.api.caller()
        record = await on_bench.record(await _made(on_bench, caller, "restored"))
        restoration = await _in_place(on_bench, caller, record)
        steps = RestoreActivitiesOnHosts(on_bench.plans, on_bench.box, on_bench.adapters, HostSlots())
        await steps.prepare_restoration(restoration)

        async def meanwhile() -> None:
            first = await _scratch_until()

            async def is_prolonged() -> bool:
                return await _scratch_until() > first

            await until(is_prolonged)

        store: Any = StoreAfter(meanwhile)
        with pytest.raises(BackupMissing):
            await Transfers(on_bench.box, store, on_bench.adapters, beat_seconds=0.05).fill(restoration, None)


async def _scratch_until() -> datetime:
    [row] = await fetch("SELECT destroy_at FROM databases WHERE purpose = 'restore'")
    moment: datetime = row["destroy_at"]
    return moment


async def _in_place(on_bench: Bench, caller: Caller, record: DatabaseRecord) -> UUID:
    """A restore in place that is accepted."""
    host = await version_of(record.host_id)
    form = DumpFormat(flavour=host.flavour, server_version=host.version, tool="", layout="")
    dumped = msgspec.json.encode(form).decode()
    backup = await add_backup(record, kind=BackupKind.MANUAL, format=dumped, quotas="{}")
    body_of(await caller.post(f"/databases/{record.uuid}/restorations", {"backup_uuid": str(backup)}), 202)
    [row] = await fetch("SELECT uuid FROM restorations")
    restoration: UUID = row["uuid"]
    return restoration


async def _backed_up_first(on_bench: Bench, caller: Caller, record: DatabaseRecord) -> UUID:
    """One that is about to exchange the data."""
    restoration = await _in_place(on_bench, caller, record)
    await in_place.begin_closing(DEFAULT_PLANS, restoration)
    assert not await in_place.back_up_first(DEFAULT_PLANS, restoration)
    await fetch("UPDATE backups SET status = 'completed', completed_at = now() WHERE kind = 'before_restore'")
    assert await in_place.back_up_first(DEFAULT_PLANS, restoration)
    return restoration


def _transfers(on_bench: Bench, adapters: Adapters) -> Transfers:
    return Transfers(on_bench.box, any_store(on_bench.box), adapters)


async def _made(on_bench: Bench, caller: Caller, name: str, **fields: Any) -> dict[str, Any]:
    """A database as it is on its host before it is filled, if it is to be."""
    made: dict[str, Any] = body_of(await caller.create(name, region=REGION, **fields), 202)["data"]
    await on_bench.steps.create_database(UUID(made["uuid"]))
    return made


async def _close(database: UUID) -> None:
    """As a restore in place does."""
    async with transaction():
        record = await find_for_update(database)
        assert record is not None
        await access.close(DEFAULT_PLANS, record)


async def _open(database: UUID) -> None:
    async with transaction():
        record = await find_for_update(database)
        assert record is not None
        await access.reopen(record)


async def _loaded() -> str | None:
    """Where the restoration's data is whole."""
    [row] = await fetch("SELECT loaded_name FROM restorations")
    name: str | None = row["loaded_name"]
    return name
