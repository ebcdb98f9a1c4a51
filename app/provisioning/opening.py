"""The end of every way back: a database that is whole is opened to its tenant."""

from contextlib import suppress
from uuid import UUID

from app.backups.restores import in_place, records
from app.backups.restores.records import RestorationRecord
from app.contracts.base import DatabaseStatus
from app.contracts.restores import RestorationKind
from app.core.secrets import SecretBox
from app.credentials.remaking import put_users
from app.databases import records as databases
from app.databases.on_engine import apply_access
from app.databases.passwords import tenant_of
from app.databases.records import DatabaseRecord, NotWanted, expect
from app.engines.base import EngineAdapter, EngineError, TenantFull, accepted_when_full
from app.hosts.adapters import AdapterFor
from app.provisioning.lifecycle import activate
from app.quotas.plans import Plans
from app.store.locks import database_lock


async def open_restored(plans: Plans, box: SecretBox, adapter_for: AdapterFor, restoration: UUID) -> None:
    """Raises `NotWanted`, `MadeElsewhere`, `EngineError`, `LockBusy`, `LockLost`."""
    async with database_lock(await records.database_of(restoration)):
        found = await records.find(restoration)
        record = None if found is None else await databases.find(found.database)
        if found is None or record is None:
            raise NotWanted("there is no such restoration")
        if found.outcome is not None:
            # An earlier attempt's answer was lost, or it was cancelled: what follows is not this step's.
            return
        if not found.is_whole_at(record.host_id, record.engine_name):
            raise EngineError("the database is not whole where it lies")
        async with adapter_for(record.host_id, record.team_id) as adapter:
            if found.kind in (RestorationKind.FROM_BACKUP, RestorationKind.CLONE):
                await _open_new(plans, box, adapter, record, found)
            else:
                await _open_again(plans, box, adapter, record, found)


async def _open_new(
    plans: Plans, box: SecretBox, adapter: EngineAdapter, record: DatabaseRecord, found: RestorationRecord
) -> None:
    expect(record, DatabaseStatus.PROVISIONING)
    tenant = tenant_of(record, box)
    await adapter.restore_access(tenant)
    with accepted_when_full():
        await adapter.log_in(tenant)
    await activate(plans, record, restoration=found.uuid)


async def _open_again(
    plans: Plans, box: SecretBox, adapter: EngineAdapter, record: DatabaseRecord, found: RestorationRecord
) -> None:
    """Opens an existing database as its row has it: one that was paused stays closed, one that was frozen may not
    write."""
    expect(record, DatabaseStatus.ACTIVE, DatabaseStatus.PAUSED)
    tenant = tenant_of(record, box)
    await put_users(box, adapter, record)
    await apply_access(adapter, tenant, record)
    if record.paused_reason is None:
        with suppress(TenantFull):  # and let in otherwise
            await adapter.log_in(tenant)
    await in_place.note_restored(plans, found.uuid, record.access_revision)
