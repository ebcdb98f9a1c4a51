"""Databases that delete themselves at a moment, and those that are protected from deletion.

`expires_at` decides, by our own database's clock: until the row is deleted, a change of it moves the moment or takes it
away, and whoever acts on it changes the row on the condition that it is still due.
"""

from datetime import datetime, timedelta
from uuid import UUID

from app.core.errors import InvalidField
from app.databases.records import DatabaseRecord
from app.store.session import execute, fetch_exists, fetch_values

SOONEST = timedelta(minutes=5)
"""How far ahead of the request that sets it `expires_at` must lie at least. Enough to see the mistake, and to take it
back."""
LATEST = timedelta(days=3653)
"""Ten years ahead of that request. A moment beyond is more likely a slip than a plan."""
NOTICE = timedelta(hours=1)
"""How long before `expires_at` a database's end is announced."""


def check_expiry(expires_at: datetime | None, now: datetime) -> None:
    """Raises `InvalidField` for a moment that can't be set now."""
    if expires_at is None:
        return
    # As a difference: near the ends of the calendar other arithmetic overflows.
    if not SOONEST <= expires_at - now <= LATEST:
        raise InvalidField("expires_at", "Expected a moment that lies 5 minutes to 10 years ahead.")


def check_protection(*, deletion_protection: bool, expires_at: datetime | None, field: str) -> None:
    """Checks that a protected database has no `expires_at`. Raises `InvalidField` that names `field`."""
    if deletion_protection and expires_at is not None:
        raise InvalidField(field, "A database with deletion_protection can't have expires_at too.")


async def find_expired(limit: int, *, without: list[UUID]) -> list[UUID]:
    """Databases whose moment has come, the longest due first."""
    return await fetch_values(
        UUID,
        "SELECT uuid FROM databases WHERE status <> 'deleted' AND expires_at <= now() AND uuid <> ALL ($2::uuid[])"
        " ORDER BY expires_at LIMIT $1",
        limit,
        without,
    )


async def find_unannounced(limit: int, *, without: list[UUID]) -> list[UUID]:
    """Databases whose moment is near, or past, and which no event has announced."""
    return await fetch_values(
        UUID,
        "SELECT uuid FROM databases WHERE status <> 'deleted' AND expires_at <= now() + $3::interval"
        " AND expiry_announced_at IS NULL AND uuid <> ALL ($2::uuid[]) ORDER BY expires_at LIMIT $1",
        limit,
        without,
        NOTICE,
    )


async def note_announced(database: UUID) -> bool:
    """Records that the event is written, in its transaction. False when it is not to be written: the moment was moved,
    or announced already, or the database is deleted."""
    return bool(
        await execute(
            "UPDATE databases SET expiry_announced_at = now() WHERE uuid = $1 AND status <> 'deleted'"
            " AND expiry_announced_at IS NULL AND expires_at <= clock_timestamp() + $2::interval",
            database,
            NOTICE,
        )
    )


async def is_expired(record: DatabaseRecord) -> bool:
    """Whether the `expires_at` of a database has come. Its row must be locked."""
    return await fetch_exists("SELECT 1 FROM databases WHERE id = $1 AND expires_at <= clock_timestamp()", record.id)
