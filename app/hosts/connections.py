"""How many connections of each host are open, and whether they are short."""

from datetime import datetime

import msgspec

from app.store.session import execute, fetch_one


class HostWatch(msgspec.Struct, frozen=True, kw_only=True):
    """What was known of a host when somebody took the turn to look at it."""

    connection_capacity: int
    connection_overcommit: int
    open: int
    admitted: int
    short_since: datetime | None
    calm_since: datetime | None
    now: datetime


_TAKE = """
WITH taken AS (
    INSERT INTO host_connections AS c (host_id) VALUES ($1)
    ON CONFLICT (host_id) DO UPDATE SET looked_at = now() WHERE c.looked_at <= now() - make_interval(secs => $2)
    RETURNING c.open, c.admitted, c.short_since, c.calm_since
)
SELECT h.connection_capacity, h.connection_overcommit, t.open, t.admitted, t.short_since, t.calm_since, now() AS now
FROM taken t, engine_hosts h WHERE h.id = $1
"""


async def take_turn(host_id: int, seconds: float) -> HostWatch | None:
    """Takes the turn to look at the host. None where somebody took it within the last `seconds`: one process at a time
    looks at it."""
    return await fetch_one(HostWatch, _TAKE, host_id, seconds)


async def record(
    host_id: int, open_sessions: int, admitted: int, short_since: datetime | None, calm_since: datetime | None
) -> None:
    await execute(
        "UPDATE host_connections SET open = $2, admitted = $3, short_since = $4, calm_since = $5 WHERE host_id = $1",
        host_id,
        open_sessions,
        admitted,
        short_since,
        calm_since,
    )
