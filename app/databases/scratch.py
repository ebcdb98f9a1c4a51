"""Databases that belong to nobody and are needed for a while: backups are restored into them to be proven.

Each has a row like that of a discarded member of the pool: it is born `deleted`, with a moment at which it is destroyed
at the latest. So whatever dies, what lies on the host has a record, and goes by the same workflow as every deleted
database.
"""

from datetime import timedelta
from enum import StrEnum
from uuid import UUID

from app.contracts.base import Engine
from app.core.ids import engine_name, engine_password, new_uuid
from app.core.secrets import SecretBox
from app.databases import records
from app.databases.deletion import request_deletion
from app.databases.passwords import password_place
from app.databases.records import DatabaseRecord
from app.outbox.workflow_starts import UPKEEP
from app.store.session import execute, transaction

CONNECTIONS = 4
"""The connection limit of such a database: a load and a comparison use fewer."""


class ScratchPurpose(StrEnum):
    PROOF = "proof"
    """A restore test of a backup."""
    RESTORE = "restore"
    """A restore in place: the backup is proven before anything of the database is touched."""


async def add_scratch(
    box: SecretBox, purpose: ScratchPurpose, *, engine: Engine, region: str, host_id: int, lasting: timedelta
) -> DatabaseRecord:
    """Writes the row, in the transaction that records what it is for. Its password is the row's, as every tenant's; on
    the host make it with `create`, and `revoke_access` at once, for nobody is to get in. `lasting` is how long it may
    be there if nobody calls `end_scratch`."""
    uuid = new_uuid()
    await execute(
        """
        INSERT INTO databases (uuid, name, engine, region, plan, status, host_id, engine_name, password_sealed,
                               connections, purpose, remote_since, deleted_at, revoked_at, destroy_at)
        VALUES ($1, '', $2, $3, 'free', 'deleted', $4, $5, $6, $7, $8, now(), now(), now(),
                clock_timestamp() + $9::interval)
        """,
        uuid,
        engine.value,
        region,
        host_id,
        engine_name(),
        box.seal(engine_password(), password_place(uuid)),
        CONNECTIONS,
        purpose.value,
        lasting,
    )
    record = await records.find(uuid)
    assert record is not None, "it was written a moment ago"
    return record


async def prolong_scratch(scratch: UUID, lasting: timedelta) -> bool:
    """Keeps the database for `lasting` from now on. False for one that is due to be destroyed, or gone."""
    return bool(
        await execute(
            "UPDATE databases SET destroy_at = clock_timestamp() + $2::interval WHERE uuid = $1"
            " AND purpose IS NOT NULL AND destroyed_at IS NULL AND destroy_at > clock_timestamp()",
            scratch,
            lasting,
        )
    )


async def end_scratch(scratch: UUID) -> None:
    """Has the database destroyed: nobody needs it any more. May be repeated."""
    async with transaction():
        record = await records.find_for_update(scratch)
        ended = await execute(
            "UPDATE databases SET destroy_at = clock_timestamp() WHERE uuid = $1 AND purpose IS NOT NULL"
            " AND destroyed_at IS NULL AND destroy_at > clock_timestamp()",
            scratch,
        )
        if record is None or not ended:
            return
        now = await records.find(scratch)
        assert now is not None, "it was changed a moment ago"
        assert now.destroy_at is not None, "it was born with one"
        await request_deletion(now, destroy_at=now.destroy_at, priority=UPKEEP, relayed=True)
