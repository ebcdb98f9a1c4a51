"""Activities that apply blueprints, as the tenants of the databases."""

import contextlib

from temporalio import activity

from activities.errors import as_failures
from app.blueprints.applications import records, running
from app.blueprints.applications.records import ApplicationRecord
from app.contracts.applications import ApplicationActivities, ApplicationResult
from app.core.limiter import Limiter
from app.core.secrets import SecretBox
from app.credentials import restoring
from app.databases import records as databases
from app.databases.passwords import tenant_of
from app.databases.records import DatabaseRecord, NotWanted
from app.engines.base import CredentialsRefused, LoginRefused
from app.hosts.adapters import Adapters, HostRemoved
from app.hosts.slots import SlotsTaken
from app.quotas.plans import Plans
from app.store.locks import applications_lock

MAX_CONCURRENT = 6
"""The maximum in one worker: scripts take minutes, and must leave room for short activities."""
MAX_PER_TEAM = 3


class ApplicationActivitiesOnHosts(ApplicationActivities):
    """Works on the registered hosts, through their adapters."""

    def __init__(
        self, plans: Plans, box: SecretBox, adapters: Adapters, *, max_concurrent: int = MAX_CONCURRENT
    ) -> None:
        self._plans = plans
        self._box = box
        self._adapters = adapters
        self._running = Limiter[int | None](MAX_PER_TEAM, total=max_concurrent)
        """By team."""

    @activity.defn(name="apply_blueprint")
    async def apply_blueprint(self, application: int) -> ApplicationResult:
        with as_failures():
            record = await _known(application)
            if not self._running.has_room(record.team_id):
                raise SlotsTaken("this worker is at as many applications as it takes at once")
            with self._running.slot_now(record.team_id):
                return await self._end(record, may_run=True)

    @activity.defn(name="abandon_application")
    async def abandon_application(self, application: int) -> ApplicationResult:
        with as_failures():
            return await self._end(await _known(application), may_run=False)

    async def _end(self, record: ApplicationRecord, *, may_run: bool) -> ApplicationResult:
        async with applications_lock(record.database):
            now = await _known(record.id)
            if now.completed_at is None:
                await self._carry_out(now, may_run=may_run)
        ended = await _known(record.id)
        return ApplicationResult(
            status=ended.status,
            statements_succeeded=ended.statements_succeeded,
            statements_total=ended.statements_total,
        )

    async def _carry_out(self, record: ApplicationRecord, *, may_run: bool) -> None:
        database = await _database_of(record)
        try:
            adapter, tenant = await self._adapters.of_host(database.host_id), tenant_of(database, self._box)
        except HostRemoved:
            if database.destroyed_at is None:
                raise
            await running.give_up(record)
            return
        try:
            await running.carry_out(self._box, adapter, tenant, record, may_run=may_run)
        except LoginRefused as error:
            if isinstance(error, CredentialsRefused):
                with contextlib.suppress(CredentialsRefused):
                    await restoring.restore(self._plans, self._box, adapter, database.uuid)
            # Read again: while the script was prepared they may have been rotated, or the database closed.
            tenant, now = tenant_of(await _database_of(record), self._box), await _known(record.id)
            await running.carry_out(self._box, adapter, tenant, now, may_run=may_run, restorable=False)


async def _known(application: int) -> ApplicationRecord:
    record = await records.find(application)
    if record is None:
        raise NotWanted(f"there is no blueprint application {application}")
    return record


async def _database_of(application: ApplicationRecord) -> DatabaseRecord:
    database = await databases.find(application.database)
    assert database is not None, "an application names a database that exists"
    return database
