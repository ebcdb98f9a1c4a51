"""Waiting for the end of an application."""

from app.blueprints.applications import records
from app.blueprints.applications.records import ApplicationRecord
from app.store.notify import RowWatch


async def await_end(watch: RowWatch, record: ApplicationRecord, timeout: float) -> ApplicationRecord:
    """The application as it is at its end, or after `timeout` seconds."""

    async def look() -> ApplicationRecord | None:
        seen = await records.find(record.id)
        return seen if seen is not None and seen.completed_at is not None else None

    if record.completed_at is not None or timeout <= 0:
        return record
    return await watch.wait_for(record.database, look, timeout) or await records.find(record.id) or record
