"""Activities that touch tenant engines."""

from uuid import UUID

from temporalio import activity

from activities.errors import as_failures
from app.contracts.base import DatabaseStatus
from app.contracts.engine import EngineActivities, RemnantRef
from app.core.ids import marker
from app.core.secrets import SecretBox
from app.databases import records
from app.databases.lifecycle import NotWanted, activate, begin_remote, expect
from app.databases.records import DatabaseRecord
from app.engines.base import EngineLimits, NameTaken, Tenant
from app.hosts.adapters import Adapters, password_place
from app.store.locks import database_lock


class EngineActivitiesOnHosts(EngineActivities):
    """On the registered hosts, through their adapters."""

    def __init__(self, box: SecretBox, adapters: Adapters) -> None:
        self._box = box
        self._adapters = adapters

    @activity.defn(name="create_database")
    async def create_database(self, database: UUID) -> None:
        with as_failures():
            async with database_lock(database):
                try:
                    record = await begin_remote(database)
                except NotWanted:
                    await self._remove_late_work(database)
                    raise
                if record.status is DatabaseStatus.ACTIVE:  # an earlier attempt's answer was lost
                    return
                adapter = await self._adapters.of_host(record.host_id)
                await adapter.create_verified(self._tenant(record), _limits(record))
                await activate(database)

    @activity.defn(name="apply_limits")
    async def apply_limits(self, database: UUID) -> int:
        with as_failures():
            async with database_lock(database):
                record = expect(
                    await records.find(database),
                    DatabaseStatus.PROVISIONING,
                    DatabaseStatus.ACTIVE,
                    DatabaseStatus.PAUSED,
                )
                # Where nothing was made yet, it is made with these limits.
                if record.remote_since is not None:
                    adapter = await self._adapters.of_host(record.host_id)
                    await adapter.set_limits(self._tenant(record), _limits(record))
                return record.limits_revision

    @activity.defn(name="revoke_access")
    async def revoke_access(self, database: UUID) -> None:
        with as_failures():
            async with database_lock(database):
                record = expect(await records.find(database), DatabaseStatus.PAUSED, DatabaseStatus.DELETED)
                if record.remote_since is None or record.destroyed_at is not None:
                    return
                adapter = await self._adapters.of_host(record.host_id)
                await adapter.revoke(self._tenant(record))

    @activity.defn(name="destroy_database")
    async def destroy_database(self, database: UUID) -> None:
        with as_failures():
            async with database_lock(database):
                record = expect(await records.find(database), DatabaseStatus.DELETED)
                if record.remote_since is None or record.destroyed_at is not None:
                    return
                adapter = await self._adapters.of_host(record.host_id)
                await adapter.destroy(self._tenant(record))

    @activity.defn(name="remove_remnant")
    async def remove_remnant(self, remnant: RemnantRef) -> None:
        with as_failures():
            async with database_lock(remnant.database):
                record = await records.find(remnant.database)
                if record is not None and (record.host_id, record.engine_name) == (remnant.host_id, remnant.name):
                    return
                adapter = await self._adapters.of_host(remnant.host_id)
                try:
                    await adapter.destroy(Tenant(name=remnant.name, password="", marker=marker(remnant.database)))
                except NameTaken:
                    # A stranger's: it was the reason to give this place up, and is none of our business.
                    activity.logger.info("the name there is a stranger's; left alone")

    async def _remove_late_work(self, database: UUID) -> None:
        """An earlier attempt may have lost its lock and worked on, past the destruction."""
        record = await records.find(database)
        if record is not None and record.remote_since is not None and record.destroyed_at is not None:
            adapter = await self._adapters.of_host(record.host_id)
            await adapter.destroy(self._tenant(record))

    def _tenant(self, record: DatabaseRecord) -> Tenant:
        """Without its password once that is forgotten; nothing that still happens then needs it."""
        sealed = record.password_sealed
        password = self._box.open(sealed, password_place(record.uuid)) if sealed is not None else ""
        return Tenant(name=record.engine_name, password=password, marker=marker(record.uuid))


def _limits(record: DatabaseRecord) -> EngineLimits:
    return EngineLimits(connections=record.connections)
