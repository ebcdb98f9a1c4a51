"""Activities that take and prove backups."""

from uuid import UUID

from temporalio import activity

from activities.errors import as_failures
from app.backups import ends, restore_tests
from app.backups.admission import admit_waiting
from app.backups.policies import BackupTerms
from app.backups.restore_test_runs import RestoreTestRuns
from app.backups.taking import BackupTaking
from app.contracts.backups import (
    BackupActivities,
    BackupRecordActivities,
    BackupStatus,
    ProofActivities,
    ProofStatus,
    ProveBackupInput,
)


class BackupActivitiesOnHosts(BackupActivities):
    """Takes backups from the registered hosts to the store of backups."""

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


class ProofActivitiesOnHosts(ProofActivities):
    """Restores from the store of backups to scratch databases on the registered hosts."""

    def __init__(self, runs: RestoreTestRuns) -> None:
        self._runs = runs

    @activity.defn(name="prove_backup")
    async def prove_backup(self, test: ProveBackupInput) -> ProofStatus:
        with as_failures():
            return await self._runs.run(test)


class BackupActivitiesOnStore(BackupRecordActivities):
    """Works through `app.backups`."""

    def __init__(self, terms: BackupTerms) -> None:
        self._terms = terms

    @activity.defn(name="give_up_backup")
    async def give_up_backup(self, backup: UUID) -> None:
        with as_failures():
            await ends.give_up(backup)

    @activity.defn(name="give_up_proof")
    async def give_up_proof(self, test: ProveBackupInput) -> None:
        with as_failures():
            await restore_tests.give_up(self._terms, test)
