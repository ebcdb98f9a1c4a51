"""A database's row from state to state, each in one statement that is safe to repeat, because activities are.

What follows from a change of state is `app.provisioning.lifecycle`.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from app.contracts.base import DatabaseStatus
from app.contracts.databases import Placement
from app.databases import records
from app.databases.records import DatabaseRecord, expect
from app.operations.ends import finish
from app.operations.kinds import OperationType
from app.operations.progress import wait_out
from app.operations.reasons import ReasonCode
from app.store.notify import announce
from app.store.session import execute, fetch_scalar, fetch_value, transaction


class MadeElsewhere(Exception):
    """The database was made at a place that is not its own any more. The next attempt reads where it is placed by
    now."""


async def change(
    record: DatabaseRecord,
    *,
    name: str,
    deletion_protection: bool,
    expires_at: datetime | None,
    labels: Sequence[str],
) -> None:
    """Changes the row, which must be locked. Only our own row changes: the name on the host is opaque. Another
    `expires_at` is announced anew."""
    await execute(
        """
        UPDATE databases SET name = $2, deletion_protection = $3, expires_at = $4, labels = $5, updated_at = now(),
               expiry_announced_at = CASE WHEN expires_at IS NOT DISTINCT FROM $4 THEN expiry_announced_at END
        WHERE id = $1
        """,
        record.id,
        name,
        deletion_protection,
        expires_at,
        labels,
    )


async def begin_remote(database: UUID) -> DatabaseRecord:
    """Records that from now on something may lie on the host. Raises `NotWanted` unless it is provisioning.

    Call it under the database's lock: then a deletion either sees the record, or keeps this from beginning.
    """
    record = await records.change_provisioning(database, "remote_since = coalesce(remote_since, now())")
    return record or expect(await records.find(database), DatabaseStatus.ACTIVE)


async def note_remote(database_id: int) -> None:
    """Records that from now on something may lie on the host of a database whose row is locked."""
    await execute("UPDATE databases SET remote_since = coalesce(remote_since, now()) WHERE id = $1", database_id)


async def mark_active(database: UUID, at: Placement) -> DatabaseRecord | None:
    """Changes `provisioning` to `active`. Returns the row as it is then, None where it is active already. Raises
    `NotWanted` for a deleted database, `MadeElsewhere` for one that isn't placed at `at`, where it was made: an attempt
    may outlive its move."""
    record = await records.change_provisioning(
        database, "status = 'active', provisioned_at = now(), updated_at = now(), restoring_at = NULL", at=at
    )
    if record is None:
        now = expect(await records.find(database), DatabaseStatus.PROVISIONING, DatabaseStatus.ACTIVE)
        if now.status is DatabaseStatus.PROVISIONING:
            raise MadeElsewhere("the database was moved while it was made, and is made elsewhere by now")
    return record


async def mark_deleted(database_id: int, *, grace: timedelta, cancelled_jobs: int) -> datetime:
    """Changes any status to `deleted`, with the row locked. Returns when its data is destroyed: by our own database's
    clock, which decides whether that moment has passed, whatever this process's clock shows. Both moments are later
    than all that was done under the lock before, such as a backup of an earlier deletion: this transaction may have
    begun before that."""
    return await fetch_scalar(
        datetime,
        """
        UPDATE databases SET status = 'deleted', deleted_at = moment.at, updated_at = now(),
               destroy_at = moment.at + $2::interval, cancelled_provision_jobs = $3
        FROM (SELECT clock_timestamp() AS at) moment WHERE id = $1 RETURNING destroy_at
        """,
        database_id,
        grace,
        cancelled_jobs,
    )


async def record_revoked(database: UUID) -> None:
    """Records that the access to a deleted database has ended; nothing happens to one that was undeleted meanwhile.
    Call it under the database's lock: nothing lets the tenant in before the row says so."""
    async with transaction():
        record = await records.find_for_update(database)
        if record is None or record.status is not DatabaseStatus.DELETED:
            return
        await execute("UPDATE databases SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1", record.id)
        await wait_out(record.id, OperationType.DELETE, "keep_data", ReasonCode.GRACE_PERIOD, until=record.destroy_at)
        await announce(database)


async def record_destroyed(database: UUID) -> bool:
    """Records that the data of a deleted database is gone. The password is deleted too: nothing is left that it opens.
    Returns False when that was recorded before."""
    async with transaction():
        destroyed = await fetch_value(
            int,
            """
            UPDATE databases SET destroyed_at = now(), revoked_at = coalesce(revoked_at, now()), password_sealed = NULL
            WHERE uuid = $1 AND status = 'deleted' AND destroyed_at IS NULL RETURNING id
            """,
            database,
        )
        if destroyed is not None:
            await finish(destroyed, (OperationType.DELETE,))
        await announce(database)
        return destroyed is not None
