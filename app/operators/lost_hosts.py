"""Giving up what lies on a host that is lost for good."""

from uuid import UUID

from app.backups.ends import end_of_lost_host
from app.backups.restores.records import give_up_left_behind
from app.databases import records
from app.databases.hosted import leaving_on
from app.databases.pool.members import discard_member
from app.databases.pooled import lock_idle
from app.quotas.plans import Plans
from app.store.session import transaction
from app.upkeep.destruction import record_destruction


async def give_up(plans: Plans, host_id: int) -> None:
    """Gives up what lies on a host that takes no new databases: what those left there that were moved, and those whose
    destruction is due, members of the pool among them, for whose destruction everything would wait for ever. Deleted
    ones within their grace stay. Each database in a transaction of its own. May be repeated."""
    async with transaction():
        for member in await lock_idle([host_id]):
            await discard_member(member.uuid)
    for database in await leaving_on(host_id):
        await _give_up(plans, database)
    await give_up_left_behind(host_id)


async def _give_up(plans: Plans, database: UUID) -> None:
    async with transaction():
        record = await records.find_for_update(database)
        if record is None or record.destroyed_at is not None:
            return
        # Its final backup, which would be tried for ever.
        await end_of_lost_host(record.id)
        await record_destruction(plans, database)
