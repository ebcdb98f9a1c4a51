"""A database's row from state to state, each in one statement that is safe to repeat, because activities are.

What follows from a change of state is `app.provisioning.lifecycle`.
"""

from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from app.contracts.base import DatabaseStatus, Engine
from app.databases import records
from app.databases.records import DatabaseRecord, expect
from app.quotas.plans import Quotas
from app.store.notify import announce
from app.store.session import execute, fetch_scalar, transaction


class NewDatabase(msgspec.Struct, frozen=True, kw_only=True):
    """A row to be written for a database that is to be made. One for the warm pool has no team, user or name."""

    uuid: UUID
    team_id: int | None = None
    user_id: int | None = None
    name: str = ""
    engine: Engine
    region: str
    plan: str
    host_id: int
    engine_name: str
    password_sealed: bytes
    quotas: Quotas = Quotas()
    connections: int


async def insert_database(new: NewDatabase) -> None:
    """Its status is `provisioning`. Call it in the transaction in which the host was chosen."""
    await execute(
        """
        INSERT INTO databases (uuid, team_id, created_by_id, name, engine, region, plan, status, host_id,
                               engine_name, password_sealed, storage_hard_limit_gb, connection_hard_limit,
                               warning_threshold_pct, connections)
        VALUES ($1, $2, $3, $4, $5, $6, $7, 'provisioning', $8, $9, $10, $11, $12, $13, $14)
        """,
        new.uuid,
        new.team_id,
        new.user_id,
        new.name,
        new.engine,
        new.region,
        new.plan,
        new.host_id,
        new.engine_name,
        new.password_sealed,
        new.quotas.storage_hard_limit_gb,
        new.quotas.connection_hard_limit,
        new.quotas.warning_threshold_pct,
        new.connections,
    )


async def rename(database_id: int, name: str) -> None:
    """Only our own row changes: the name on the host is opaque."""
    await execute("UPDATE databases SET name = $2, updated_at = now() WHERE id = $1", database_id, name)


async def begin_remote(database: UUID) -> DatabaseRecord:
    """Records that from now on something may lie on the host. Raises `NotWanted` unless it is provisioning.

    Call it under the database's lock: then a deletion either sees the record, or keeps this from beginning.
    """
    record = await records.change_provisioning(database, "remote_since = coalesce(remote_since, now())")
    return record or expect(await records.find(database), DatabaseStatus.ACTIVE)


async def mark_active(database: UUID) -> DatabaseRecord | None:
    """`provisioning` to `active`: the row as it is then, None where it is active already. Raises `NotWanted` for a
    deleted one."""
    record = await records.change_provisioning(
        database, "status = 'active', provisioned_at = now(), updated_at = now()"
    )
    if record is None:
        expect(await records.find(database), DatabaseStatus.ACTIVE)
    return record


async def mark_deleted(database_id: int, *, grace: timedelta, cancelled_jobs: int) -> datetime:
    """Any status to `deleted`, with the row locked. Returns when its data is destroyed: by our own database's clock,
    which decides whether that moment has passed, whatever this process's clock shows."""
    return await fetch_scalar(
        datetime,
        """
        UPDATE databases SET status = 'deleted', deleted_at = now(), updated_at = now(),
               destroy_at = clock_timestamp() + $2::interval, cancelled_provision_jobs = $3
        WHERE id = $1 RETURNING destroy_at
        """,
        database_id,
        grace,
        cancelled_jobs,
    )


async def record_revoked(database: UUID) -> None:
    """The access to a deleted database has ended; nothing happens to one that was undeleted meanwhile. Call it under
    the database's lock: nothing lets the tenant in before the row says so."""
    async with transaction():
        await execute(
            "UPDATE databases SET revoked_at = coalesce(revoked_at, now()) WHERE uuid = $1 AND status = 'deleted'",
            database,
        )
        await announce(database)


async def record_destroyed(database: UUID) -> None:
    """The data of a deleted database is gone. The password is deleted too: nothing is left that it opens."""
    async with transaction():
        await execute(
            """
            UPDATE databases SET destroyed_at = coalesce(destroyed_at, now()),
                   revoked_at = coalesce(revoked_at, now()), password_sealed = NULL
            WHERE uuid = $1 AND status = 'deleted'
            """,
            database,
        )
        await announce(database)
