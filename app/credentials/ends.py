"""What ends by itself: overlaps of rotations, and users that expire. The rows decide; a look at them only begins the
end."""

from uuid import UUID

from app.audit.actions import Action
from app.audit.events import append
from app.contracts.base import DatabaseStatus
from app.credentials import operation, rotations, users
from app.credentials.requests import request_apply
from app.databases import credentials, records
from app.outbox.workflow_starts import NORMAL
from app.store.session import fetch_values, transaction

_DUE = """
SELECT DISTINCT uuid FROM (
    (SELECT d.uuid FROM credential_rotations r JOIN databases d ON d.id = r.database_id
     WHERE r.status = 'overlapping' AND r.retires_at <= now() AND d.uuid <> ALL ($2::uuid[])
     ORDER BY r.retires_at LIMIT $1)
    UNION ALL
    (SELECT d.uuid FROM database_users u JOIN databases d ON d.id = u.database_id
     WHERE u.status = 'active' AND u.expires_at <= now() AND d.uuid <> ALL ($2::uuid[])
     ORDER BY u.expires_at LIMIT $1)
) due
"""


async def find_due(most: int, *, without: list[UUID]) -> list[UUID]:
    """The databases with an overlap that is over, or a user whose time is over, except those of `without`."""
    return await fetch_values(UUID, _DUE, most, without)


async def begin_due(database: UUID) -> bool:
    """Begins what is due on this database, and asks for the workflow that ends it. False where nothing is due any
    more."""
    async with transaction():
        # The database before what it owns, as everything does that changes both.
        record = await records.find_for_update(database)
        if record is None:
            return False
        begun = await rotations.begin_due_retirement(record.id) + await users.begin_expired_removals(record.id)
        if begun:
            revision = await credentials.next_revision(record.id)
            await request_apply(record, revision, priority=NORMAL, relayed=True)
            await append(Action.CREDENTIALS_END, ("database", database), team_id=record.team_id)
        return bool(begun)


async def end_with_database(database: UUID) -> None:
    """Ends the rotations and users of a deleted database of which nothing is left that their passwords open. In the
    transaction that records that."""
    record = await records.find_for_update(database)
    if record is not None and record.status is DatabaseStatus.DELETED:
        await rotations.end_with_database(record.id)
        await users.end_with_database(record.id)
        await operation.note_cancelled(record.id, record.status)
