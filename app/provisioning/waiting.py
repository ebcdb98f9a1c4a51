"""Waiting, after the commit, until a database is what a request asked for."""

from uuid import UUID

from app.contracts.base import DatabaseStatus
from app.core.errors import DeletionUndone, NotFound, RevocationPending
from app.databases.records import DatabaseRecord
from app.provisioning import service
from app.store.notify import RowWatch


async def await_active(watch: RowWatch, database: UUID, timeout: float) -> DatabaseRecord:
    """The database once it is no longer being provisioned, or as it is after `timeout` seconds. Raises `NotFound` for
    one that is deleted by then."""

    async def read() -> DatabaseRecord | None:
        record = await service.get_any(database)
        return record if record.status is not DatabaseStatus.PROVISIONING else None

    record = await watch.wait_for(database, read, timeout) if timeout else None
    record = record or await service.get_any(database)
    if record.status is DatabaseStatus.DELETED:
        raise NotFound("database")
    return record


async def await_limits(
    watch: RowWatch, database: UUID, timeout: float, *, revision: int | None = None
) -> tuple[bool, DatabaseRecord]:
    """Whether the engine has the limits of this revision, by default those that the row has now, after `timeout`
    seconds at most, and the row."""
    wanted = (await service.get_any(database)).limits_revision if revision is None else revision

    async def read() -> DatabaseRecord | None:
        record = await service.get_any(database)
        # A database that is still being made gets its limits when it is made.
        waits = record.status in (DatabaseStatus.ACTIVE, DatabaseStatus.PAUSED)
        done = record.limits_applied >= wanted or not waits
        return record if done else None

    record = await watch.wait_for(database, read, timeout)
    return (True, record) if record else (False, await service.get_any(database))


async def await_access(watch: RowWatch, database: UUID, timeout: float) -> tuple[bool, DatabaseRecord]:
    """Whether the engine lets in whom the row lets in, after `timeout` seconds at most, and the row. Raises `NotFound`
    for one that is deleted by then."""

    async def read() -> DatabaseRecord | None:
        record = await service.get_any(database)
        waits = record.status in (DatabaseStatus.ACTIVE, DatabaseStatus.PAUSED)
        return None if waits and record.access_applied < record.access_revision else record

    found = await watch.wait_for(database, read, timeout)
    record = found or await service.get_any(database)
    if record.status is DatabaseStatus.DELETED:
        raise NotFound("database")
    return found is not None, record


async def await_revoked(watch: RowWatch, database: UUID, timeout: float) -> DatabaseRecord:
    """A deleted database to which nobody has access any more. Raises `RevocationPending` where the engine has not
    confirmed that within `timeout` seconds, and `DeletionUndone` for one that was undeleted."""

    async def read() -> DatabaseRecord | None:
        record = await service.get_any(database)
        if record.status is not DatabaseStatus.DELETED:
            raise DeletionUndone()
        # One that never became active is destroyed without a grace period, so its answer can say that nothing is left.
        ended = record.destroyed_at if record.cancelled_provision_jobs else record.revoked_at
        return record if record.remote_since is None or ended else None

    record = await watch.wait_for(database, read, timeout) or await service.get_any(database)
    if record.remote_since is not None and record.revoked_at is None:
        raise RevocationPending(
            "The database is deleted, but its engine has not confirmed yet that all access has ended. "
            "The work goes on; retry with the same Idempotency-Key to learn of its end."
        )
    return record
