"""What the registered hosts carry, for placement and for the operator."""

from collections.abc import Collection

import msgspec

from app.contracts.base import Engine
from app.engines.placement import HostLoad, least_loaded
from app.store.session import execute, fetch_all

_SICK_SECONDS = 60.0
"""How long a host that failed is passed over."""

_LOADS = """
SELECT h.id, h.region, h.host, h.port, h.capacity,
       h.connection_capacity::bigint * h.connection_overcommit AS connection_room,
       coalesce(h.sick_until > now(), false) AS sick,
       -- What the pool threw away has nobody's data, and makes room immediately. What backups are restored into for a
       -- while is nobody's too, and takes its place.
       count(d.id) FILTER (WHERE d.team_id IS NOT NULL OR d.status <> 'deleted' OR d.purpose IS NOT NULL) AS databases,
       coalesce(sum(d.connections) FILTER (WHERE d.status <> 'deleted' OR d.purpose IS NOT NULL), 0)::bigint
           AS connections
FROM engine_hosts h LEFT JOIN databases d ON d.host_id = h.id AND d.destroyed_at IS NULL
WHERE h.id = any($1::bigint[])
GROUP BY h.id
"""


async def loads_of(host_ids: list[int]) -> list[HostLoad]:
    return await fetch_all(HostLoad, _LOADS, host_ids)


async def place(
    engine: Engine,
    region: str | None,
    connections: int,
    *,
    among: Collection[int] | None = None,
) -> HostLoad | None:
    """The host for one more database, or None when none has room. `among` are those that can be chosen, all if it is
    None.

    Call it in the transaction that then writes the database: the hosts stay locked until its end, so two creates
    at once never take the last place twice. All of them are locked, in the order of their ids, those too that can't
    be chosen: whoever changes one of them afterwards has it already, and two such transactions never wait for each
    other.
    """
    hosts = await _lock(engine, region)
    candidates = [host.id for host in hosts if not host.draining and (among is None or host.id in among)]
    # Counted only now, in a statement of its own: one that waited for the locks would count what was there before.
    return least_loaded(await loads_of(candidates), connections)


async def rooms(engine: Engine, region: str | None) -> dict[int, int]:
    """By host: how many more connections it may give to tenants. The hosts stay locked until the transaction's end, as
    by `place`."""
    loads = await loads_of([host.id for host in await _lock(engine, region)])
    return {load.id: load.connection_room - load.connections for load in loads}


class _LockedHost(msgspec.Struct, frozen=True):
    id: int
    draining: bool


async def _lock(engine: Engine, region: str | None) -> list[_LockedHost]:
    return await fetch_all(
        _LockedHost,
        """
        SELECT id, draining FROM engine_hosts
        WHERE engine = $1 AND ($2::text IS NULL OR region = $2) AND removed_at IS NULL
        ORDER BY id FOR NO KEY UPDATE
        """,
        engine,
        region,
    )


async def mark_sick(host_id: int, reason: str) -> None:
    """Leaves a host that failed out of placement for a while. One that was set aside stays so."""
    await execute(
        "UPDATE engine_hosts SET sick_until = now() + make_interval(secs => $2), sick_reason = $3"
        " WHERE id = $1 AND sick_until IS DISTINCT FROM 'infinity'",
        host_id,
        _SICK_SECONDS,
        reason,
    )


async def mark_recovered(host_id: int) -> None:
    """Ends the sickness of a host that answers, if its time to be passed over has run out: what waits on it may be
    given out again."""
    await execute(
        "UPDATE engine_hosts SET sick_until = NULL, sick_reason = NULL WHERE id = $1 AND sick_until <= now()", host_id
    )


async def mark_well(host_id: int) -> None:
    """Lets databases be placed again on a host on which something just succeeded."""
    await execute(
        "UPDATE engine_hosts SET sick_until = NULL, sick_reason = NULL WHERE id = $1 AND sick_until IS NOT NULL",
        host_id,
    )
