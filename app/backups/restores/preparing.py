"""What a backup is loaded into when its database is there already, or was: a scratch database, or the database itself
on its new host."""

from uuid import UUID

from app.backups.restores import in_place, records
from app.backups.restores.faults import ScratchGone
from app.backups.restores.transfers import SCRATCH_LASTS
from app.contracts.restores import RestorationKind
from app.core.secrets import SecretBox
from app.credentials.remaking import make_again, put_users
from app.databases import records as databases
from app.databases.on_engine import limits_of
from app.databases.passwords import tenant_of
from app.databases.records import DatabaseRecord
from app.databases.scratch import ScratchPurpose, add_scratch, end_scratch
from app.databases.states import note_remote
from app.hosts.adapters import AdapterFor
from app.store.locks import database_lock
from app.store.session import transaction


async def prepare(box: SecretBox, adapter_for: AdapterFor, restoration: UUID) -> RestorationKind:
    """Prepares what the backup is loaded into, and returns the kind of the restoration. Raises `NotWanted`,
    `ScratchGone`, `EngineError`, `LockBusy`, `LockLost`."""
    async with database_lock(await records.database_of(restoration)):
        async with transaction():
            record, found = await in_place.locked(restoration)
            moved = found.kind is RestorationKind.MOVE
            target = await _note_moved(record) if moved else await _scratch(box, record, restoration, found.scratch)
        if found.loaded_name is not None:
            return found.kind
        async with adapter_for(target.host_id, record.team_id) as adapter:
            if moved:
                await make_again(box, adapter, target)
                # Before the load, which gives them what they have in the backup.
                await put_users(box, adapter, target)
                return found.kind
            tenant = tenant_of(target, box)
            await adapter.create(tenant, limits_of(target))
            await adapter.revoke_access(tenant)
            return found.kind


async def end_scratch_of(restoration: UUID) -> None:
    """Ends the restoration's scratch database, if it has one. May be repeated."""
    found = await records.find(restoration)
    if found is not None and found.scratch is not None:
        await end_scratch(found.scratch)


async def _note_moved(record: DatabaseRecord) -> DatabaseRecord:
    await note_remote(record.id)
    return record


async def _scratch(box: SecretBox, record: DatabaseRecord, restoration: UUID, scratch: UUID | None) -> DatabaseRecord:
    """The row of the scratch database, on the same host; written before anything is made."""
    if scratch is not None:
        found = await databases.find(scratch)
        if found is None or found.destroyed_at is not None:
            raise ScratchGone("the scratch database is gone")
        return found
    made = await add_scratch(
        box,
        ScratchPurpose.RESTORE,
        engine=record.engine,
        region=record.region,
        host_id=record.host_id,
        lasting=SCRATCH_LASTS,
    )
    await records.note_scratch(restoration, made.id)
    return made
