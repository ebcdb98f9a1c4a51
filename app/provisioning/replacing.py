"""Another place for a database that is being made, where its own has failed."""

from collections.abc import Collection

from app.contracts.base import DatabaseStatus
from app.contracts.control import HostFailure
from app.contracts.databases import Placement
from app.core.ids import engine_name
from app.core.metrics.counters import PROVISIONING_MOVES
from app.databases import records
from app.databases.moving import move_provisioning
from app.databases.pool.eviction import place_with_room_made
from app.databases.records import DatabaseRecord, expect
from app.engines.placement import HostLoad
from app.hosts.loads import mark_sick, place
from app.hosts.records import open_hosts
from app.store.session import transaction


async def replace_host(failure: HostFailure, among: Collection[int] | None = None) -> Placement:
    """Moves a provisioning database off a host that failed, or to another name where its name is somebody else's.

    It stays where it is when no other host of its region has room, of those in `among` if that is given: then waiting
    is all there is. Raises `NotWanted` unless it is provisioning.
    """
    async with transaction():
        old = expect(await records.find_for_update(failure.database), DatabaseStatus.PROVISIONING)
        if old.placement != failure.placement:
            return old.placement
        if failure.name_taken:
            await move_provisioning(old, old.host_id, engine_name())
            PROVISIONING_MOVES.labels(old.engine.value, old.region, "name_taken").inc()
        else:
            other = await _find_other(old, among)
            await mark_sick(old.host_id, failure.reason)
            if other is not None and not other.sick:
                await move_provisioning(old, other.id, old.engine_name)
                PROVISIONING_MOVES.labels(old.engine.value, old.region, "host_failed").inc()
        return expect(await records.find(failure.database), DatabaseStatus.PROVISIONING).placement


async def _find_other(record: DatabaseRecord, among: Collection[int] | None) -> HostLoad | None:
    """Another host for the database; None when none has room. Members of the pool give way to a team's, as when it was
    created."""
    healthy = [
        host
        for host in await open_hosts(record.engine, record.region)
        if host != record.host_id and (among is None or host in among)
    ]
    find = place if record.team_id is None else place_with_room_made
    return await find(record.engine, record.region, record.connections, among=healthy)
