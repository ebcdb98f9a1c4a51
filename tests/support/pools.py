"""The contents of the warm pools in our own database."""

from uuid import UUID

from app.contracts.base import Engine
from app.store.session import fetch
from tests.support.waiting import until

READY = "team_id IS NULL AND status = 'active' AND destroyed_at IS NULL"


async def ready(engine: Engine = Engine.POSTGRES) -> list[UUID]:
    """Members that a create could claim, in order."""
    rows = await fetch(f"SELECT uuid FROM databases WHERE {READY} AND engine = $1 ORDER BY id", engine)
    return [row["uuid"] for row in rows]


async def full(size: int, engine: Engine = Engine.POSTGRES) -> list[UUID]:
    """Waits until the pool has exactly this size, with no member being provisioned."""

    async def look() -> list[UUID] | None:
        members = await ready(engine)
        making = await fetch(
            "SELECT 1 FROM databases WHERE team_id IS NULL AND status = 'provisioning' AND engine = $1", engine
        )
        return members if len(members) == size and not making else None

    found = await until(look)
    assert found is not None
    return found
