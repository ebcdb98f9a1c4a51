"""What operators do to the access of databases of any team."""

from uuid import UUID

from app.audit.drafts import note
from app.contracts.base import PauseReason
from app.core.clock import utc_now
from app.core.errors import NotFound
from app.databases import access, records
from app.databases.records import DatabaseRecord
from app.quotas import usage
from app.quotas.plans import Plans
from app.store.session import transaction


async def pause(plans: Plans, database: UUID) -> DatabaseRecord:
    """Pauses a database until an operator resumes it: what pauses and resumes by itself leaves it alone. Raises
    `NotFound`, or `DatabaseNotActive` when it is being made or is deleted. Returns the row as it is to become."""
    async with transaction():
        record = await _locked(database)
        await access.pause(plans, record, PauseReason.OPERATOR)
        return await _locked(database)


async def resume(database: UUID) -> DatabaseRecord:
    """Resumes a database, whatever it was paused for; one that had used up its hours may run until the month turns.
    Raises as `pause` does."""
    async with transaction():
        record = await _locked(database)
        if record.paused_reason is PauseReason.RUNTIME:
            await usage.excuse(record.id, utc_now())
        await access.resume(record)
        return await _locked(database)


async def _locked(database: UUID) -> DatabaseRecord:
    record = await records.find_for_update(database)
    if record is None or record.team_id is None:
        raise NotFound("database")
    note(team_id=record.team_id)
    return record
