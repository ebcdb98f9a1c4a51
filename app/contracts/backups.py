"""Taking and proving backups: the workflows, and their activities on the backup queue of the database's region,
or on its restore queue for a backup that is part of a restore."""

from abc import ABC, abstractmethod
from enum import StrEnum
from uuid import UUID

from temporalio import activity, workflow

from app.contracts.databases import DatabaseWorkflowInput

BACKUP_STORE_UNAVAILABLE = "BackupStoreUnavailable"
"""Failure type: the store of backups doesn't answer."""
BACKUP_STORE_REFUSED = "BackupStoreRefused"
"""Failure type: the store of backups answered that it won't."""

FINAL_BACKUP_PENDING = "FinalBackupPending"
"""Failure type: the data of a deleted database stays until its final backup is there."""
FINAL_BACKUP_FAILED = "FinalBackupFailed"
"""Failure type: the same, and the last attempt at that backup has failed."""


class BackupKind(StrEnum):
    """Why a backup is taken."""

    MANUAL = "manual"
    SCHEDULED = "scheduled"
    FINAL = "final"
    """Before the destruction of a deleted database."""
    BEFORE_RESTORE = "before_restore"


class BackupStatus(StrEnum):
    """The last five are ends. `completed` means that a restore brings back everything that it lists."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    DELETED = "deleted"


class ProofStatus(StrEnum):
    """Whether a restore of the backup brought back what it holds. `failed`: the restore did not succeed, so nothing was
    compared."""

    PENDING = "pending"
    RUNNING = "running"
    PROVEN = "proven"
    MISMATCH = "mismatch"
    FAILED = "failed"


class BackupDatabaseInput(DatabaseWorkflowInput, frozen=True, kw_only=True):
    """The activity reads what is to be backed up from our own database."""

    backup: UUID
    in_restore: bool = False
    """Whether a restore waits for it, with the database closed."""
    round: int = 0
    """Attempts that have failed, for a run that continues one with a long history."""


class ProveBackupInput(DatabaseWorkflowInput, frozen=True, kw_only=True):
    backup: UUID
    number: int
    """Counts the restore tests of the backup."""
    round: int = 0


class BackupActivities(ABC):
    """On the backup queue, and on the restore queue. It reads the row, works without a lock of ours while it streams,
    and lets the row decide at its end. It is safe to repeat."""

    @activity.defn(name="take_backup")
    @abstractmethod
    async def take_backup(self, backup: UUID) -> BackupStatus:
        """Streams a dump into the store, with its manifest last, and records it as completed. One whose manifest is
        there already is only recorded. A database that can't be dumped exactly ends the backup as failed. Fails with
        `NOT_WANTED` when it was cancelled or deleted meanwhile."""


class ProofActivities(ABC):
    """On the backup queue; as of `BackupActivities`."""

    @activity.defn(name="prove_backup")
    @abstractmethod
    async def prove_backup(self, test: ProveBackupInput) -> ProofStatus:
        """Restores the backup into a scratch database on a host that has room, compares all it holds, has the scratch
        destroyed, and records the result. Fails with `NOT_WANTED` when the backup is gone."""


class BackupRecordActivities(ABC):
    """On our own database."""

    @activity.defn(name="give_up_backup")
    @abstractmethod
    async def give_up_backup(self, backup: UUID) -> None:
        """Records it as failed, for the reason that its last attempt met."""

    @activity.defn(name="give_up_proof")
    @abstractmethod
    async def give_up_proof(self, test: ProveBackupInput) -> None:
        """Records that the restore test could not be run."""


@workflow.defn(name="BackupDatabase")
class BackupDatabase(ABC):
    """Takes one backup. It waits for hosts and for the store, a bounded number of times."""

    @workflow.run
    @abstractmethod
    async def run(self, request: BackupDatabaseInput) -> None: ...


@workflow.defn(name="ProveBackup")
class ProveBackup(ABC):
    """Proves one backup by restoring it."""

    @workflow.run
    @abstractmethod
    async def run(self, request: ProveBackupInput) -> None: ...
