"""When the service itself logs in with tenants' credentials, to see whether it can.

Nothing in a session distinguishes such a login from the tenant's, so it is recorded on our side.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

from app.store.session import execute, fetch_scalar, fetch_values

_LONGEST_SECONDS = 60.0
"""How long a login stays on record whose process dies in between."""
# In the order in which measurements write them, or the two could wait for each other.
_MARK = """
WITH marked AS (
    SELECT u.id FROM database_usage u JOIN databases d ON d.id = u.database_id
    WHERE d.uuid = any($1::uuid[]) ORDER BY u.database_id FOR NO KEY UPDATE OF u
)
UPDATE database_usage u SET own_login_until = clock_timestamp() + make_interval(secs => $2)
FROM marked WHERE u.id = marked.id
"""


@asynccontextmanager
async def under_way(databases: Sequence[UUID]) -> AsyncIterator[None]:
    """For the block, and for a minute at most, sessions of these databases count as the service's."""
    await execute(_MARK, databases, _LONGEST_SECONDS)
    try:
        yield
    finally:
        await execute(_MARK, databases, 0.0)


async def moment() -> datetime:
    """Now, by our own database's clock."""
    return await fetch_scalar(datetime, "SELECT clock_timestamp()")


async def among(database_ids: Sequence[int], since: datetime) -> set[int]:
    """Which of these databases the service may have been logged in to since that moment."""
    found = await fetch_values(
        int,
        "SELECT database_id FROM database_usage WHERE database_id = any($1::bigint[]) AND own_login_until >= $2",
        list(database_ids),
        since,
    )
    return set(found)
