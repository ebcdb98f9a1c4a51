"""What a database's row records of its credentials: which are its own, and whether its engine takes them."""

from uuid import UUID

from app.databases.views import append_event
from app.outbox.event_types import EventType
from app.quotas.plans import Plans
from app.store.session import execute, fetch_scalar, fetch_values, transaction


async def next_revision(database_id: int) -> int:
    """Counts one more change of a database's credentials or users, in the transaction that accepts it."""
    return await fetch_scalar(
        int,
        "UPDATE databases SET credentials_revision = credentials_revision + 1 WHERE id = $1"
        " RETURNING credentials_revision",
        database_id,
    )


async def replace(database_id: int, login: str, password_sealed: bytes) -> None:
    """Records the account that its tenant logs in as from now on, in the transaction that records that the engine takes
    it. The password is sealed for `password_place`."""
    await execute(
        "UPDATE databases SET login_name = nullif($2, engine_name), password_sealed = $3,"
        " credentials_created_at = now(), credentials_refused_at = NULL, updated_at = now() WHERE id = $1",
        database_id,
        login,
        password_sealed,
    )


async def record_refused(database_id: int) -> None:
    """Records that its engine refuses its credentials, and that they are about to be put right."""
    await execute(
        "UPDATE databases SET credentials_refused_at = coalesce(credentials_refused_at, now()) WHERE id = $1",
        database_id,
    )


async def record_restored(plans: Plans, database: UUID) -> bool:
    """Records that its engine takes its credentials. Returns whether it had refused them; then the event is written."""
    async with transaction():
        restored = await execute(
            "UPDATE databases SET credentials_refused_at = NULL"
            " WHERE uuid = $1 AND status <> 'deleted' AND credentials_refused_at IS NOT NULL",
            database,
        )
        if restored:
            await append_event(plans, EventType.DATABASE_PASSWORD_RESTORED, database)
        return bool(restored)


async def ever_changed(databases: list[UUID]) -> list[UUID]:
    """The databases among these whose credentials or users were ever changed: the others have one account, which is
    their own."""
    return await fetch_values(
        UUID,
        "SELECT uuid FROM databases WHERE uuid = any($1::uuid[]) AND credentials_revision > 0 ORDER BY id",
        databases,
    )


async def note_tried(databases: list[UUID]) -> None:
    """Records that a login to each database was tried."""
    await execute("UPDATE databases SET login_tried_at = now() WHERE uuid = any($1::uuid[])", databases)


async def untried_longest(host_id: int, databases: list[UUID], most: int) -> list[UUID]:
    """At most `most` of these databases: first those whose account may have to be put right, then those that no login
    was tried to for longest."""
    return await fetch_values(
        UUID,
        "SELECT uuid FROM databases WHERE host_id = $1 AND uuid = any($2::uuid[])"
        " ORDER BY credentials_refused_at, login_tried_at NULLS FIRST, random() LIMIT $3",
        host_id,
        databases,
        most,
    )
