"""The activity that brings a database's credentials and users to its engine."""

from uuid import UUID

from temporalio import activity

from activities.errors import as_failures
from app.contracts.base import DatabaseStatus
from app.contracts.credentials import CredentialActivities
from app.core.secrets import SecretBox
from app.credentials.applying import CredentialChanges
from app.databases import records
from app.databases.records import NotWanted, expect
from app.hosts.adapters import Adapters
from app.hosts.slots import HostSlots
from app.quotas.plans import Plans
from app.store.locks import database_lock


class CredentialActivitiesOnHosts(CredentialActivities):
    """Works on the registered hosts, through their adapters."""

    def __init__(self, plans: Plans, box: SecretBox, adapters: Adapters, slots: HostSlots) -> None:
        self._plans = plans
        self._box = box
        self._adapters = adapters
        self._slots = slots

    @activity.defn(name="apply_credentials")
    async def apply_credentials(self, database: UUID) -> str:
        with as_failures():
            async with database_lock(database):
                record = expect(
                    await records.find(database), DatabaseStatus.ACTIVE, DatabaseStatus.PAUSED, DatabaseStatus.DELETED
                )
                if record.destroyed_at is not None:
                    raise NotWanted("nothing is left of the database")
                async with self._slots.team_slot(record.host_id, record.team_id):
                    adapter = await self._adapters.of_host(record.host_id)
                    return await CredentialChanges(self._plans, self._box, adapter, record).apply()
