"""How long the rows of backups stay of which nothing is kept."""

from datetime import timedelta

from app.store.session import execute


async def delete_gone_backups(limit: int, age: timedelta) -> int:
    """Those that ended so long ago and of which the store has nothing. See `app.upkeep.sweep`."""
    return await execute(
        """
        DELETE FROM backups WHERE id IN (
            SELECT id FROM backups WHERE removed_at IS NOT NULL AND changed_at < now() - $2::interval
            ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
        )
        """,
        limit,
        age,
    )
