"""Removing from the store what interrupted backups left there."""

import asyncio
from datetime import timedelta
from uuid import UUID

import structlog

from app.backups.storage.store import BackupStore
from app.backups.stored import stored_record
from app.core.clock import utc_now

_INTERVAL_SECONDS = 6 * 3600.0
log = structlog.get_logger(__name__)


async def remove_stray_objects(store: BackupStore, age: timedelta | None) -> None:
    """Removes what is older than `age`, which has to be longer than the store's clock can be off; nothing if it is
    None. Runs until cancelled; any number may run concurrently."""
    while age is not None:
        try:
            async for item in store.remove_strays(utc_now() - age, _is_wanted):
                log.info("stray_object_removed", object=item.name, length=item.length)
        except Exception as fault:
            log.warning("stray_objects_waiting", reason=str(fault) or type(fault).__name__)
        await asyncio.sleep(_INTERVAL_SECONDS)
    await asyncio.Event().wait()


async def _is_wanted(backup: UUID) -> bool:
    """One under way; and one that should be complete, which `headwater backups verify-store` reports."""
    record = await stored_record(backup)
    return record is not None and (record.kept or record.under_way)
