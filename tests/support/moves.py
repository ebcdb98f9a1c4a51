"""State changes of a database as the workflows make them, for tests without workflows."""

from uuid import UUID

from app.databases import records, states
from app.provisioning import lifecycle
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch


async def make_active(uuid: str) -> None:
    """The state after a successful provisioning."""
    await states.begin_remote(UUID(uuid))
    await activate(UUID(uuid))


async def activate(database: UUID) -> None:
    """The last step of a provisioning, of what was made where the database is placed."""
    made = await records.find(database)
    assert made is not None
    await lifecycle.activate(DEFAULT_PLANS, made)


async def make_revoked(uuid: str) -> None:
    """The state after a deletion has ended all access."""
    await states.record_revoked(UUID(uuid))


async def events_of(uuid: str) -> list[str]:
    rows = await fetch(
        "SELECT e.type FROM events e JOIN databases d ON d.id = e.database_id WHERE d.uuid = $1 ORDER BY e.id",
        UUID(uuid),
    )
    return [row["type"] for row in rows]
