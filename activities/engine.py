"""Activities that work on tenant engines."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from uuid import UUID

from temporalio import activity

from activities.errors import as_failures
from app.auth.teams import get_team
from app.backups.final import FinalBackups
from app.contracts.base import DatabaseStatus
from app.contracts.engine import EngineActivities, RemnantRef
from app.core.clock import utc_now
from app.core.ids import marker
from app.core.secrets import SecretBox
from app.databases import access, records
from app.databases.deletion import begin_destruction
from app.databases.on_engine import apply_access, limits_of
from app.databases.passwords import tenant_of
from app.databases.records import DatabaseRecord, NotWanted, expect
from app.databases.retention import end_oldest
from app.databases.states import begin_remote, record_revoked
from app.engines.base import EngineAdapter, EngineError, NameTaken, Tenant
from app.hosts.adapters import Adapters, HostRemoved
from app.hosts.slots import HostSlots, SlotsTaken
from app.outbox.provisionings import RunningProvisionings
from app.provisioning.first_attempts import FirstAttempts
from app.provisioning.lifecycle import activate
from app.quotas.plans import Plans
from app.quotas.usage import record_retained
from app.store.locks import database_lock
from app.store.session import transaction

_MEASURING_SECONDS = 10.0
"""The time limit for measuring one database."""


class EngineActivitiesOnHosts(EngineActivities):
    """Works on the registered hosts, through their adapters."""

    def __init__(
        self,
        plans: Plans,
        box: SecretBox,
        adapters: Adapters,
        slots: HostSlots,
        running: RunningProvisionings,
        final: FinalBackups | None = None,
        first_attempts: FirstAttempts | None = None,
    ) -> None:
        """`final` are the backups that come before a destruction, if any do; `first_attempts` what this process begins
        before Temporal asks for it."""
        self._plans = plans
        self._box = box
        self._adapters = adapters
        self._slots = slots
        self._running = running
        self._final = final
        self._first_attempts = first_attempts or FirstAttempts()
        self._first_attempts.create_with(self._create)

    @activity.defn(name="create_database")
    async def create_database(self, database: UUID) -> None:
        workflow_id = activity.info().workflow_id or "" if activity.in_activity() else ""
        try:
            first = self._first_attempts.take(workflow_id)
            await (self._create(database) if first is None else first.finish())
        finally:
            self._running.end(workflow_id)

    async def _create(self, database: UUID) -> None:
        with as_failures():
            async with database_lock(database):
                try:
                    record = await begin_remote(database)
                except NotWanted:
                    await self._remove_late_work(database)
                    raise
                if record.status is DatabaseStatus.ACTIVE:  # an earlier attempt's answer was lost
                    return
                tenant = tenant_of(record, self._box)
                async with self._slots.slot(record.host_id):
                    adapter = await self._adapters.of_host(record.host_id)
                    if record.restoring_at is not None:
                        # Nobody gets in before its data is whole.
                        await adapter.create(tenant, limits_of(record))
                        await adapter.revoke_access(tenant)
                        return
                    await adapter.create_verified(tenant, limits_of(record))
                await activate(self._plans, record)

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
                # If nothing was created yet, it will be created with these limits.
                if record.remote_since is not None:
                    async with self._adapter_of(record) as adapter:
                        await adapter.set_limits(tenant_of(record, self._box), limits_of(record))
                return record.limits_revision

    @activity.defn(name="apply_access")
    async def apply_access(self, database: UUID) -> str:
        with as_failures():
            # Before the wait for the lock too, which the restore may hold: a wait is reported as an attempt, and the
            # operation would no longer say that it waits for the restore.
            _expect_reopened(await records.find(database))
            async with database_lock(database):
                record = _expect_reopened(await records.find(database))
                async with self._adapter_of(record) as adapter:
                    state = await apply_access(adapter, tenant_of(record, self._box), record)
                await access.record_applied(self._plans, database, record.access_revision)
                return state

    @activity.defn(name="revoke_access")
    async def revoke_access(self, database: UUID) -> None:
        with as_failures():
            async with database_lock(database):
                record = expect(await records.find(database), DatabaseStatus.DELETED)
                if _may_be_open(record):
                    async with self._adapter_of(record) as adapter:
                        await adapter.revoke_access(tenant_of(record, self._box))
                await record_revoked(database)
                if self._final is not None:
                    await self._final.request(database)
                await self._measure_retained(record)

    @activity.defn(name="destroy_database")
    async def destroy_database(self, database: UUID) -> None:
        with as_failures():
            async with database_lock(database):
                if self._final is not None:
                    await self._final.expect_made(database)
                record = await begin_destruction(database)
                if record.remote_since is None or record.destroyed_at is not None:
                    return
                await self._destroy(record)

    @activity.defn(name="remove_remnant")
    async def remove_remnant(self, remnant: RemnantRef) -> None:
        with as_failures():
            await self._at_remnant(remnant, self._slots.removal_slot, lambda adapter, tenant: adapter.destroy(tenant))

    @activity.defn(name="close_remnant")
    async def close_remnant(self, remnant: RemnantRef) -> None:
        with as_failures():
            await self._at_remnant(
                remnant, self._slots.team_slot, lambda adapter, tenant: adapter.revoke_access(tenant)
            )

    async def _at_remnant(
        self,
        remnant: RemnantRef,
        slot: Callable[[int, int | None], AbstractAsyncContextManager[None]],
        step: Callable[[EngineAdapter, Tenant], Awaitable[object]],
    ) -> None:
        """Takes the step at the remnant's place, unless the database is placed there by now."""
        async with database_lock(remnant.database):
            record = await records.find(remnant.database)
            if record is not None and (record.host_id, record.engine_name) == (remnant.host_id, remnant.name):
                return
            try:
                tenant = Tenant(name=remnant.name, password="", marker=marker(remnant.database))
                async with slot(remnant.host_id, None if record is None else record.team_id):
                    await step(await self._adapters.of_host(remnant.host_id), tenant)
            except NameTaken:
                # Not ours: it is the reason why this place was abandoned, and stays untouched.
                activity.logger.info("the name there is a stranger's; left alone")
            except HostRemoved:
                # It may never come back. Should it be registered again, `Reconcile` finds what lies there.
                activity.logger.info("the host was removed; what lies there is left alone")

    async def _measure_retained(self, record: DatabaseRecord) -> None:
        """Measures the retained data, now that nobody writes any more: it counts against the team's limit on
        retained data. Doesn't wait for a host that can't measure it."""
        if record.team_id is None or record.remote_since is None or record.cancelled_provision_jobs:
            return
        if record.destroyed_at is not None:
            return  # it was given up with its host, which may be removed by now
        try:
            async with asyncio.timeout(_MEASURING_SECONDS), self._adapter_of(record) as adapter:
                measured = await adapter.measure([record.engine_name])
        except (EngineError, SlotsTaken, TimeoutError) as fault:
            activity.logger.info("what is kept was not measured: %s", str(fault) or "no answer in time")
            return
        async with transaction():
            # First, because it locks the team, and the team's lock comes before all locks of what it owns.
            await get_team(record.team_id, lock=True)
            # Tenants of MySQL may drop their own database.
            usage = measured.get(record.engine_name)
            await record_retained(record.id, usage.storage_bytes if usage else 0, utc_now())
            await end_oldest(self._plans, record.team_id)

    async def _remove_late_work(self, database: UUID) -> None:
        """Removes what an earlier attempt may have made that lost its lock and went on working after the
        destruction."""
        record = await records.find(database)
        if record is not None and record.remote_since is not None and record.destroyed_at is not None:
            with suppress(HostRemoved):
                await self._destroy(record)

    async def _destroy(self, record: DatabaseRecord) -> None:
        async with self._slots.removal_slot(record.host_id, record.team_id):
            adapter = await self._adapters.of_host(record.host_id)
            await adapter.destroy(tenant_of(record, self._box))

    @asynccontextmanager
    async def _adapter_of(self, record: DatabaseRecord) -> AsyncIterator[EngineAdapter]:
        """Holds one of the team's slots of the host for the block."""
        async with self._slots.team_slot(record.host_id, record.team_id):
            yield await self._adapters.of_host(record.host_id)


def _expect_reopened(record: DatabaseRecord | None) -> DatabaseRecord:
    """Raises `NotWanted` for a database that is deleted, or closed for a restore."""
    live = expect(record, DatabaseStatus.ACTIVE, DatabaseStatus.PAUSED)
    if live.restoring_at is not None:
        raise NotWanted("its data is being exchanged, and whoever does it lets its tenant in")
    return live


def _may_be_open(record: DatabaseRecord) -> bool:
    """Whether the engine has yet to end the access to a deleted database. Once it has, it isn't asked again, which
    would end the dump of the final backup too: each run that continues a workflow with a long history comes here."""
    if record.remote_since is None or record.destroyed_at is not None:
        return False
    # The row of what is nobody's may be born with that moment.
    return record.revoked_at is None or record.team_id is None
