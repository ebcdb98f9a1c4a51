"""A deleted database is gone from its host: what our own database keeps of it alone ends in the same transaction."""

from uuid import UUID

from app.credentials import ends
from app.provisioning.lifecycle import note_destroyed
from app.queries.targets import delete_reader
from app.quotas.plans import Plans
from app.store.session import transaction


async def record_destruction(plans: Plans, database: UUID) -> None:
    """Records that nothing is left of a deleted database, and deletes the passwords of its accounts. May be
    repeated."""
    async with transaction():
        await note_destroyed(plans, database)
        await delete_reader(database)
        await ends.end_with_database(database)
