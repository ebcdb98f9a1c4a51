"""Activities that take and prove backups."""

from uuid import UUID

from temporalio import activity

from activities.errors import as_failures
from app.backups import ends
from app.backups.admission import admit_waiting
from app.backups.policies import BackupTerms
from app.backups.taking import BackupTaking
from app.contracts.backups import BackupActivities, BackupRecordActivities, BackupStatus


class BackupActivitiesOnHosts(BackupActivities):
    """Between the registered hosts and the store of backups."""

    def __init__(self, terms: BackupTerms, taking: BackupTaking) -> None:
        self._terms = terms
        self._taking = taking

    @activity.defn(name="take_backup")
    async def take_backup(self, backup: UUID) -> BackupStatus:
        with as_failures():
            status = await self._taking.take(backup)
            # Its end makes room.
            await admit_waiting(self._terms.limits)
            return status


class BackupActivitiesOnStore(BackupRecordActivities):
    """Through `app.backups`."""

    @activity.defn(name="give_up_backup")
    async def give_up_backup(self, backup: UUID) -> None:
        with as_failures():
            await ends.give_up(backup)
