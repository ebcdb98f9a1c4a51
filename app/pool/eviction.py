"""Members of the pool give way where a create, or more connections, would otherwise find no room."""

from collections.abc import Sequence
from itertools import accumulate
from uuid import UUID

import msgspec

from app.contracts.base import Engine
from app.engines.placement import HostLoad
from app.hosts.loads import loads_of, place
from app.pool.members import discard_member
from app.store.session import fetch, fetch_all


class _Idle(msgspec.Struct, frozen=True):
    uuid: UUID
    host_id: int
    connections: int


# Those that somebody is about to claim are passed over: nobody waits for them with a host locked.
_IDLE = """
SELECT m.uuid, m.host_id, m.connections FROM databases m
WHERE m.team_id IS NULL AND m.destroyed_at IS NULL AND m.status = 'active' AND m.host_id = any($1::bigint[])
ORDER BY m.position FOR NO KEY UPDATE OF m SKIP LOCKED
"""


async def place_with_room_made(engine: Engine, region: str | None, connections: int) -> HostLoad | None:
    """As `place`, and where no host has room, on the one that fewest members have to go from. They go with the caller's
    transaction."""
    host = await place(engine, region, connections)
    if host is not None:
        return host
    rows = await fetch(
        "SELECT id FROM engine_hosts WHERE engine = $1 AND ($2::text IS NULL OR region = $2) AND NOT draining"
        " AND coalesce(sick_until <= now(), true)",
        engine,
        region,
    )
    if not await make_room([row["id"] for row in rows], databases=1, connections=connections):
        return None
    return await place(engine, region, connections)


async def make_room(host_ids: Sequence[int], *, databases: int, connections: int) -> bool:
    """Throws away the oldest members of one of these hosts, as few as give it room for so many databases and
    connections more. The caller holds the hosts locked. False, and none goes, when that isn't enough anywhere."""
    idle = await fetch_all(_Idle, _IDLE, list(host_ids))
    choices = [
        chosen
        for load in await loads_of(list(host_ids))
        if (chosen := _fewest(load, [one for one in idle if one.host_id == load.id], databases, connections))
    ]
    if not choices:
        return False
    for one in min(choices, key=len):
        await discard_member(one.uuid)
    return True


def _fewest(load: HostLoad, members: Sequence[_Idle], databases: int, connections: int) -> list[_Idle]:
    """Empty when all of them are not enough."""
    freed = accumulate(one.connections for one in members)
    for count, connections_freed in enumerate(freed, start=1):
        fits = load.connections + connections - connections_freed <= load.connection_capacity
        if fits and load.databases + databases - count <= load.capacity:
            return list(members[:count])
    return []
