"""Activities that bring data into databases."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from uuid import UUID

from temporalio import activity

from activities.errors import as_failures, failure
from app.backups.restores import in_place, preparing, records
from app.backups.restores.faults import (
    BackupGone,
    BackupUnmade,
    DataNotBack,
    ScratchGone,
    SourceBusy,
    SourceGone,
    SourceUnavailable,
)
from app.backups.restores.transfers import Transfers
from app.backups.restoring import ContentsDiffer
from app.backups.storage.errors import BackupDamaged, BackupMissing, IdentityNeeded, KeyUnknown
from app.backups.storage.store import BackupStore
from app.contracts import restores as kinds
from app.contracts.restores import (
    FillActivities,
    RestorationFailure,
    RestorationKind,
    RestoreActivities,
    RestoreRecordActivities,
)
from app.core.limiter import Limiter, LimitReached
from app.core.secrets import SecretBox
from app.databases import records as databases
from app.databases.passwords import tenant_of
from app.engines.base import EngineAdapter
from app.engines.dumping import LoadRefused
from app.hosts.adapters import Adapters
from app.hosts.slots import HostSlots
from app.provisioning import opening
from app.provisioning.lifecycle import fail_restoration
from app.quotas.plans import Plans
from app.store.locks import database_lock

MAX_PER_TEAM = 3
MAX_PER_HOST = 4
MAX_LOADS = 5
"""Fewer than the queue has slots: the others are for exchanges and the backups before them, whose databases are closed
to their tenants meanwhile."""
_FINAL: Mapping[type[Exception], str] = {
    BackupDamaged: kinds.BACKUP_DAMAGED,
    ContentsDiffer: kinds.BACKUP_DAMAGED,
    BackupMissing: kinds.BACKUP_MISSING,
    BackupGone: kinds.BACKUP_MISSING,
    BackupUnmade: kinds.BACKUP_UNMADE,
    LoadRefused: kinds.LOAD_REFUSED,
    ScratchGone: kinds.SCRATCH_GONE,
    # The workflow waits for its turn, and takes no slot meanwhile.
    SourceBusy: kinds.SLOTS_TAKEN,
    SourceGone: kinds.SOURCE_GONE,
}
_PASSING: Mapping[type[Exception], str] = {
    IdentityNeeded: kinds.BACKUP_UNREADABLE,
    DataNotBack: kinds.DATA_NOT_BACK,
    SourceUnavailable: kinds.SOURCE_AWAY,
}


@contextmanager
def as_restore_failures() -> Iterator[None]:
    """The same as `as_failures`, with the other errors that can be in the way of the data."""
    with as_failures():
        try:
            yield
        except KeyUnknown as fault:
            raise failure(kinds.BACKUP_UNREADABLE, str(fault)) from None
        except tuple(_FINAL) as fault:
            raise failure(_kind(_FINAL, fault), str(fault), final=True) from None
        except tuple(_PASSING) as fault:
            raise failure(_kind(_PASSING, fault), str(fault)) from None


def _kind(kinds_of: Mapping[type[Exception], str], fault: Exception) -> str:
    return next(kind for type_, kind in kinds_of.items() if isinstance(fault, type_))


class TransferSlots:
    """Limits how many loads of one team, on one host, and altogether a worker is at: each may last for hours, depending
    on what the tenant has in its database."""

    def __init__(self, per_team: int = MAX_PER_TEAM, per_host: int = MAX_PER_HOST, *, total: int | None = None) -> None:
        self._of_team = Limiter[int](per_team)
        self._of_host = Limiter[int](per_host, total=total)

    @asynccontextmanager
    async def slot(self, restoration: UUID) -> AsyncIterator[None]:
        """Holds a slot for the block. Fails with `SLOTS_TAKEN`: the workflow waits, and takes no slot of the queue
        meanwhile."""
        database = await databases.find(await records.database_of(restoration))
        assert database is not None, "rows of databases are kept"
        with ExitStack() as held:
            try:
                if database.team_id is not None:
                    held.enter_context(self._of_team.slot_now(database.team_id))
                held.enter_context(self._of_host.slot_now(database.host_id))
            except LimitReached:
                reason = "this worker is at as many loads, of the team, on the host or altogether, as it takes at once"
                raise failure(kinds.SLOTS_TAKEN, reason, final=True) from None
            yield


class FillActivitiesOnHosts(FillActivities):
    """Works through the adapters of the registered hosts, and the store of backups."""

    def __init__(self, box: SecretBox, store: BackupStore, adapters: Adapters) -> None:
        self._transfers = Transfers(box, store, adapters)
        self._filling = TransferSlots(total=MAX_LOADS)
        self._exchanging = TransferSlots(per_team=2)
        """Slots of their own, because the database is closed to its tenant."""

    @activity.defn(name="fill_database")
    async def fill_database(self, restoration: UUID) -> None:
        with as_restore_failures():
            async with self._filling.slot(restoration):
                await self._transfers.fill(restoration, activity.info().workflow_id)

    @activity.defn(name="exchange_data")
    async def exchange_data(self, restoration: UUID) -> None:
        with as_restore_failures():
            async with self._exchanging.slot(restoration):
                await self._transfers.exchange(restoration, activity.info().workflow_id)


class RestoreActivitiesOnHosts(RestoreActivities):
    def __init__(self, plans: Plans, box: SecretBox, adapters: Adapters, slots: HostSlots) -> None:
        self._plans = plans
        self._box = box
        self._adapters = adapters
        self._slots = slots

    @activity.defn(name="prepare_restoration")
    async def prepare_restoration(self, restoration: UUID) -> RestorationKind:
        with as_restore_failures():
            return await preparing.prepare(self._box, self._adapter_for, restoration)

    @activity.defn(name="close_database")
    async def close_database(self, restoration: UUID) -> None:
        with as_restore_failures():
            async with database_lock(await records.database_of(restoration)):
                record = await in_place.begin_closing(self._plans, restoration)
                async with self._adapter_for(record.host_id, record.team_id) as adapter:
                    await adapter.revoke_access(tenant_of(record, self._box))

    @activity.defn(name="open_database")
    async def open_database(self, restoration: UUID) -> None:
        with as_restore_failures():
            await opening.open_restored(self._plans, self._box, self._adapter_for, restoration)

    @asynccontextmanager
    async def _adapter_for(self, host_id: int, team_id: int | None) -> AsyncIterator[EngineAdapter]:
        """Holds one of the team's slots of the host for the block."""
        async with self._slots.team_slot(host_id, team_id):
            yield await self._adapters.of_host(host_id)


class RestoreRecordActivitiesOnStore(RestoreRecordActivities):
    def __init__(self, plans: Plans) -> None:
        self._plans = plans

    @activity.defn(name="back_up_first")
    async def back_up_first(self, restoration: UUID) -> bool:
        with as_restore_failures():
            return await in_place.back_up_first(self._plans, restoration)

    @activity.defn(name="end_scratch")
    async def end_scratch(self, restoration: UUID) -> None:
        with as_failures():
            await preparing.end_scratch_of(restoration)

    @activity.defn(name="fail_restoration")
    async def fail_restoration(self, failure: RestorationFailure) -> None:
        with as_failures():
            await fail_restoration(self._plans, failure.restoration, failure.kind)
