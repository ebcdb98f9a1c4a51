"""How long applications that have ended are kept: rules of the sweep, see `app.upkeep.sweep`.

A log may have ten thousand statements, so it is deleted by itself, many rows at a time, and the application after it.
"""

from datetime import timedelta

from app.blueprints import records as blueprints
from app.store.session import execute, fetch_values


async def delete_old_logs(most: int, age: timedelta) -> int:
    """Deletes the statements of applications that ended longer ago than `age`."""
    return await execute(
        """
        DELETE FROM blueprint_statements WHERE id IN (
            SELECT s.id FROM blueprint_applications a JOIN blueprint_statements s ON s.application_id = a.id
            WHERE a.completed_at < now() - $2::interval
            ORDER BY a.completed_at LIMIT $1 FOR UPDATE OF s SKIP LOCKED
        )
        """,
        most,
        age,
    )


async def delete_old_applications(most: int, age: timedelta) -> int:
    """Deletes applications that ended longer ago than `age` and have no log any more. The SQL of blueprints that were
    deleted before goes with the last application that was made with it."""
    of_blueprints = await fetch_values(
        int,
        """
        DELETE FROM blueprint_applications WHERE id IN (
            SELECT id FROM blueprint_applications a
            WHERE completed_at < now() - $2::interval
              AND NOT EXISTS (SELECT FROM blueprint_statements WHERE application_id = a.id)
            ORDER BY completed_at LIMIT $1 FOR UPDATE SKIP LOCKED
        ) RETURNING blueprint_id
        """,
        most,
        age,
    )
    for blueprint in await blueprints.lock_deleted(set(of_blueprints)):
        await blueprints.forget_unused(blueprint)
    return len(of_blueprints)
