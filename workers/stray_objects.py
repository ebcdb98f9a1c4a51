"""Removing from the store what interrupted backups left there."""

import asyncio
from datetime import datetime, timedelta
from uuid import UUID

import structlog

from app.backups.storage.store import BackupStore
from app.backups.stored import stored_record
from app.core.clock import utc_now
from workers.due import repeat

_INTERVAL_SECONDS = 6 * 3600.0
log = structlog.get_logger(__name__)


async def serve_stray_objects(store: BackupStore, age: timedelta | None) -> None:
    """Removes stray objects that are older than `age`, which has to be longer than the store's clock can be off;
    nothing if it is None. Runs until cancelled; any number may run concurrently."""
    if age is None:
        await asyncio.Event().wait()
        return

    async def look() -> None:
        await remove_stray_objects(store, utc_now() - age)

    await repeat(look, _INTERVAL_SECONDS, failure="stray_objects_waiting")


async def remove_stray_objects(store: BackupStore, before: datetime) -> None:
    """Removes objects that were last written before that moment, and are not to be there."""
    async for item in store.remove_strays(before, _is_wanted):
        log.info("stray_object_removed", object=item.name, length=item.length)


async def _is_wanted(backup: UUID) -> bool:
    """Whether the backup is under way, or should be complete: `headwater backups verify-store` reports it if it is
    not."""
    record = await stored_record(backup)
    return record is not None and (record.kept or record.under_way)
