"""Operations that ended long ago are deleted."""

from datetime import timedelta

from app.store.session import execute


async def delete_old_operations(most: int, age: timedelta) -> int:
    """Those that ended longer ago than that. See `app.upkeep.sweep`."""
    return await execute(
        """
        DELETE FROM operations WHERE id IN (
            SELECT id FROM operations WHERE finished_at < now() - $2::interval
            ORDER BY finished_at LIMIT $1 FOR UPDATE SKIP LOCKED
        )
        """,
        most,
        age,
    )
