"""Members of the pool are discarded where a create, or more connections, would otherwise have no room."""

from collections.abc import Collection, Sequence
from itertools import accumulate

from app.contracts.base import Engine
from app.databases.pool.members import discard_member
from app.databases.pooled import IdleMember, lock_idle
from app.engines.placement import HostLoad
from app.hosts.loads import loads_of, place
from app.hosts.records import lock_host, open_hosts


async def place_with_room_made(
    engine: Engine, region: str | None, connections: int, *, among: Collection[int] | None = None
) -> HostLoad | None:
    """The same as `place`, but where no host has room, members are discarded on the host where fewest have to go. They
    go with the caller's transaction."""
    host = await place(engine, region, connections, among=among)
    if host is not None:
        return host
    open_ones = [one for one in await open_hosts(engine, region) if among is None or one in among]
    if not await make_room(open_ones, databases=1, connections=connections):
        return None
    return await place(engine, region, connections, among=among)


async def make_room(host_ids: Sequence[int], *, databases: int, connections: int) -> bool:
    """Discards the oldest members of one of these hosts, as few as give it room for so many databases and
    connections more. The caller has locked the hosts. False, and none goes, when that isn't enough anywhere."""
    idle = await lock_idle(host_ids)
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


async def room_on_host(host_id: int, connections: int, *, allocated: int) -> int:
    """How many connections the host could allocate to one of its databases, `connections` at least where members of the
    pool can give way to them. `allocated` of them count as its own already. The host stays locked until the
    transaction's end."""
    await lock_host(host_id)
    load = (await loads_of([host_id]))[0]
    room = load.connection_room - load.connections + allocated
    if connections > room and await make_room([host_id], databases=0, connections=connections - allocated):
        return connections
    return room


def _fewest(load: HostLoad, members: Sequence[IdleMember], databases: int, connections: int) -> list[IdleMember]:
    """The fewest members that have to go to make room, in their order; empty when all of them are not enough."""
    freed = accumulate(one.connections for one in members)
    for count, connections_freed in enumerate(freed, start=1):
        fits = load.connections + connections - connections_freed <= load.connection_room
        # A host keeps what it has, be it more than its capacity by now: that counts only where one is added.
        if fits and (not databases or load.databases + databases - count <= load.capacity):
            return list(members[:count])
    return []
