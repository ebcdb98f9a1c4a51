"""Moves of a database's life as the workflows make them, for tests without workflows."""

from uuid import UUID

from app.databases import states
from app.provisioning import lifecycle
from app.store.session import fetch


async def make_active(uuid: str) -> None:
    """As a provisioning that worked leaves it."""
    await states.begin_remote(UUID(uuid))
    await lifecycle.activate(UUID(uuid))


async def make_revoked(uuid: str) -> None:
    """As a deletion leaves it when access has ended."""
    await states.record_revoked(UUID(uuid))


async def events_of(uuid: str) -> list[str]:
    rows = await fetch(
        "SELECT e.type FROM events e JOIN databases d ON d.id = e.database_id WHERE d.uuid = $1 ORDER BY e.id",
        UUID(uuid),
    )
    return [row["type"] for row in rows]
