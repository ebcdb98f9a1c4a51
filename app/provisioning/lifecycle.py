"""A database's moves from state to state: the row and the event that tells of it, in one transaction.

Each is safe to repeat, because activities are: a move that was made is made.
"""

from datetime import datetime, timedelta
from uuid import UUID

from app.applications.queue import end_waiting, start_next
from app.contracts.base import DatabaseStatus
from app.contracts.control import HostFailure
from app.contracts.databases import Placement, RemoveRemnant, RemoveRemnantInput
from app.contracts.queues import remnant_workflow_id
from app.core.clock import utc_now
from app.core.ids import engine_name, new_uuid
from app.core.metrics.counters import PROVISIONING_MOVES, PROVISIONING_SECONDS
from app.databases import records
from app.databases.events import append_event, append_event_for
from app.databases.records import DatabaseRecord, expect
from app.hosts.loads import mark_sick, mark_well, place
from app.outbox.event_types import EventType
from app.outbox.workflow_starts import NORMAL, request_start
from app.store.notify import announce
from app.store.session import fetch, transaction

NO_GRACE = timedelta(0)
"""Of a database that never became active: it holds nothing worth keeping."""


async def begin_remote(database: UUID) -> DatabaseRecord:
    """Notes that from now on something may lie on the host. Raises `NotWanted` unless it is provisioning.

    Call it under the database's lock: then a deletion either sees the note, or keeps this from beginning.
    """
    record = await records.change_provisioning(database, "remote_since = coalesce(remote_since, now())")
    return record or expect(await records.find(database), DatabaseStatus.ACTIVE)


async def activate(database: UUID) -> None:
    """`provisioning` to `active`. Raises `NotWanted` for a deleted one."""
    async with transaction():
        record = await records.change_provisioning(
            database, "status = 'active', provisioned_at = now(), updated_at = now()"
        )
        if record is None:
            expect(await records.find(database), DatabaseStatus.ACTIVE)
            return
        await mark_well(record.host_id)
        await append_event_for(EventType.DATABASE_PROVISIONED, record)
        await start_next(record.id, relayed=True)
        await announce(database)
    _observe(record, "active")


async def note_deleted(record: DatabaseRecord, *, grace: timedelta, cancelled_jobs: int = 0) -> datetime:
    """Any status to `deleted`, in the caller's transaction, with the row locked. Returns when its data goes: by our own
    database's clock, which decides whether that moment has passed, whatever this process's clock shows."""
    rows = await fetch(
        """
        UPDATE databases SET status = 'deleted', deleted_at = now(), updated_at = now(),
               destroy_at = clock_timestamp() + $2::interval, cancelled_provision_jobs = $3
        WHERE id = $1 RETURNING destroy_at
        """,
        record.id,
        grace,
        cancelled_jobs,
    )
    await end_waiting(record.uuid, "The database was deleted before its turn came. Nothing was changed.")
    await append_event(EventType.DATABASE_DELETED, record.uuid)
    await announce(record.uuid)
    if record.status is DatabaseStatus.PROVISIONING:
        _observe(record, "cancelled")
    destroy_at: datetime = rows[0]["destroy_at"]
    return destroy_at


async def abandon_provisioning(database: UUID) -> None:
    """A provisioning that was cancelled from outside ends as a deletion would end it."""
    async with transaction():
        record = await records.find_for_update(database)
        if record is not None and record.status is DatabaseStatus.PROVISIONING:
            await note_deleted(record, grace=NO_GRACE, cancelled_jobs=1)


async def record_revoked(database: UUID) -> None:
    """Of a deleted database; nothing happens to one that was undeleted meanwhile. Call it under the database's lock:
    nothing lets the tenant in before the row says so."""
    async with transaction():
        await fetch(
            "UPDATE databases SET revoked_at = coalesce(revoked_at, now()) WHERE uuid = $1 AND status = 'deleted'",
            database,
        )
        await announce(database)


async def record_destroyed(database: UUID) -> None:
    """Forgets the passwords too: nothing is left that they open."""
    async with transaction():
        await fetch(
            """
            UPDATE databases SET destroyed_at = coalesce(destroyed_at, now()),
                   revoked_at = coalesce(revoked_at, now()), password_sealed = NULL
            WHERE uuid = $1 AND status = 'deleted'
            """,
            database,
        )
        await fetch(
            """
            DELETE FROM query_readers r USING databases d
            WHERE d.id = r.database_id AND d.uuid = $1 AND d.status = 'deleted'
            """,
            database,
        )
        await announce(database)


async def record_limits_applied(database: UUID, revision: int) -> None:
    async with transaction():
        await fetch(
            "UPDATE databases SET limits_applied = greatest(limits_applied, $2) WHERE uuid = $1",
            database,
            revision,
        )
        await announce(database)


async def replace_host(failure: HostFailure) -> Placement:
    """Moves a provisioning database off a host that failed, or to another name where its name is a stranger's.

    It stays where it is when no other host of its region has room: then waiting is all there is. Raises
    `NotWanted` unless it is provisioning.
    """
    async with transaction():
        old = expect(await records.find_for_update(failure.database), DatabaseStatus.PROVISIONING)
        if old.placement != failure.placement:
            return old.placement
        if failure.name_taken:
            await _move(old, old.host_id, engine_name())
            PROVISIONING_MOVES.labels(old.engine.value, old.region, "name_taken").inc()
        else:
            other = await place(old.engine, old.region, old.connections, without=old.host_id)
            await mark_sick(old.host_id, failure.reason)
            if other is not None and not other.sick:
                await _move(old, other.id, old.engine_name)
                PROVISIONING_MOVES.labels(old.engine.value, old.region, "host_failed").inc()
        return expect(await records.find(failure.database), DatabaseStatus.PROVISIONING).placement


async def _move(record: DatabaseRecord, host_id: int, name: str) -> None:
    """Asks in the same transaction for what may lie at the old place to be removed: nobody would know of it
    afterwards."""
    await fetch(
        "UPDATE databases SET host_id = $2, engine_name = $3, remote_since = NULL, updated_at = now() WHERE id = $1",
        record.id,
        host_id,
        name,
    )
    if record.remote_since is not None:
        await request_start(
            RemoveRemnant,
            remnant_workflow_id(record.uuid, record.host_id, new_uuid()),
            RemoveRemnantInput(
                database=record.uuid,
                engine=record.engine,
                region=record.region,
                team_id=record.team_id,
                host_id=record.host_id,
                name=record.engine_name,
            ),
            priority=NORMAL,
        )


def _observe(record: DatabaseRecord, outcome: str) -> None:
    if record.team_id is None:
        return  # it was made while nobody waited, behind all others
    took = utc_now() - record.created_at
    PROVISIONING_SECONDS.labels(record.engine.value, record.region, outcome).observe(max(0, took.total_seconds()))
