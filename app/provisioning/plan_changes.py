"""Databases follow their plan where the operator has changed it."""

from uuid import UUID

from app.contracts.base import DatabaseStatus
from app.databases import records
from app.databases.limits import change_limits, get_limit_of_plan, list_behind
from app.databases.pool.eviction import room_on_host
from app.quotas.plans import Plans
from app.store.session import transaction


async def follow_plans(plans: Plans) -> int:
    """Changes the connection limits of databases whose plan allows another number by now, and that have no limit of
    their own, but not below what their users have; returns how many there were. One whose host has no room for more
    stays as it is, and has its turn again in a later run. Storage and hours are read from the plan whenever they are
    measured."""
    followed = 0
    # By host: how many more were refused. It isn't asked again for as many, which would lock it each time.
    refused: dict[int, int] = {}
    for database in await list_behind(plans):
        if database.more >= refused.get(database.host_id, database.more + 1):
            continue
        if await _follow(plans, database.uuid):
            followed += 1
        else:
            refused[database.host_id] = database.more
    return followed


async def _follow(plans: Plans, database: UUID) -> bool:
    """False where the database's host has no room for what its plan allows."""
    async with transaction():
        record = await records.find_for_update(database)
        if record is None or record.status not in (DatabaseStatus.ACTIVE, DatabaseStatus.PAUSED):
            return True
        connections = await get_limit_of_plan(plans, record)
        if connections > record.connections:
            room = await room_on_host(record.host_id, connections, allocated=record.connections)
            if connections > room:
                return False
        if connections != record.connections:
            await change_limits(record, record.quotas, connections)
        return True
