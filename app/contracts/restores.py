"""Databases that get their data from a backup or from another database: kinds, activities, workflows."""

from abc import ABC, abstractmethod
from datetime import timedelta
from enum import StrEnum
from uuid import UUID

from temporalio import activity, workflow

from app.contracts.base import Contract
from app.contracts.databases import DatabaseWorkflowInput

BACKUP_DAMAGED = "BackupDamaged"
"""Failure type: what the store holds of the backup is not what was written, or doesn't load. It never will."""
BACKUP_MISSING = "BackupMissing"
"""Failure type: the store has nothing of the backup any more."""
BACKUP_UNREADABLE = "BackupUnreadable"
"""Failure type: the backup is encrypted for a recipient, whose identity this worker lacks."""
BACKUP_UNMADE = "BackupUnmade"
"""Failure type: the backup that has to be made first could not be made."""
DATA_NOT_BACK = "DataNotBack"
"""Failure type: the backup doesn't load, and neither does that of what there was. The database stays closed until an
operator has the latter whole again."""
SOURCE_AWAY = "SourceAway"
"""Failure type: the database that is to be cloned can't be read at the moment."""
SLOTS_TAKEN = "SlotsTaken"
"""Failure type: the worker is at as many loads, removals or other long steps of this team, or on this host, as it takes
at once. No host is to blame."""
SOURCE_GONE = "SourceGone"
"""Failure type: the database that is to be cloned was deleted."""
LOAD_REFUSED = "LoadRefused"
"""Failure type: the engine doesn't take the data. It never will."""
SCRATCH_GONE = "ScratchGone"
"""Failure type: the scratch database was destroyed meanwhile."""
NON_RETRYABLE = (BACKUP_DAMAGED, BACKUP_MISSING, BACKUP_UNMADE, LOAD_REFUSED, SCRATCH_GONE, SOURCE_GONE)
"""Failures that end a restoration: no further attempt ends otherwise."""

TRANSFER_LIMIT = timedelta(days=30)
"""Of one attempt at moving the data: at a MiB a second, as slow as a restore test may be, two and a half TiB. What
takes longer begins anew, for ever. It heartbeats: one that has stopped is noticed within seconds."""


class RestorationKind(StrEnum):
    FROM_BACKUP = "from_backup"
    """A new database, with what a backup holds."""
    CLONE = "clone"
    """A new database, with what another one holds."""
    IN_PLACE = "in_place"
    """A database whose data becomes a backup's."""
    MOVE = "move"
    """A database of a lost host, which is made again on another one."""


class RestorationOutcome(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RestorationFailure(Contract, frozen=True, kw_only=True):
    restoration: UUID
    kind: str
    """The failure's type."""


class RestoreDatabaseInput(DatabaseWorkflowInput, frozen=True, kw_only=True):
    restoration: UUID


class FillActivities(ABC):
    """Bringing data into databases, on the restore queue of their region. They take as long as the data is large."""

    @activity.defn(name="fill_database")
    @abstractmethod
    async def fill_database(self, restoration: UUID) -> None:
        """Empties the closed database that is to be filled, loads the source's data into it, and compares the two.
        Records where it is whole. Fails with `NOT_WANTED` when it is deleted or the restoration has ended; with
        `BACKUP_DAMAGED`, `BACKUP_MISSING` or `SOURCE_GONE`, which stay as they are; with `BACKUP_UNREADABLE`,
        `SOURCE_AWAY`, `SLOTS_TAKEN` or what the store of backups reports, which may pass."""

    @activity.defn(name="exchange_data")
    @abstractmethod
    async def exchange_data(self, restoration: UUID) -> None:
        """In place: gives the closed database the backup's data. From its begin nothing cancels the restoration. Where
        the engine can't exchange whole databases, and the data doesn't load after all, what there was is put back
        before it fails. Fails as `fill_database` does."""


class RestoreActivities(ABC):
    """Short steps on the engine queue of a region."""

    @activity.defn(name="prepare_restoration")
    @abstractmethod
    async def prepare_restoration(self, restoration: UUID) -> RestorationKind:
        """In place: makes the scratch database on the host, closed, in which the backup is proven. Of a database that
        moves: makes it on its new host, closed, with all its accounts. Returns which of the two it is."""

    @activity.defn(name="close_database")
    @abstractmethod
    async def close_database(self, restoration: UUID) -> None:
        """In place: ends all access until the restoration ends, in the row and on the engine."""

    @activity.defn(name="open_database")
    @abstractmethod
    async def open_database(self, restoration: UUID) -> None:
        """Lets the tenant in to a database that is whole, proves it with a login, and ends the restoration: a database
        that was made is active, one that was restored or moved is what it was, and each has its event. Fails with
        `NOT_WANTED` as the others do."""


class RestoreRecordActivities(ABC):
    """On our own database."""

    @activity.defn(name="back_up_first")
    @abstractmethod
    async def back_up_first(self, restoration: UUID) -> bool:
        """Asks for the backup of what there is, once; says whether it is completed. Fails with `BACKUP_UNMADE` when it
        can't be, and with `NOT_WANTED` when the restoration has ended."""

    @activity.defn(name="end_scratch")
    @abstractmethod
    async def end_scratch(self, restoration: UUID) -> None:
        """Has the scratch database destroyed, if there is one. What is in it after an exchange is what there was."""

    @activity.defn(name="fail_restoration")
    @abstractmethod
    async def fail_restoration(self, failure: RestorationFailure) -> None:
        """Ends a restoration that can't succeed, and its operation as `failed`. A database that was to be made by it
        is deleted, without a grace period; one that was closed for it is let in again."""


@workflow.defn(name="RestoreDatabase")
class RestoreDatabase(ABC):
    """Gives a database the data of a backup: in place, or on another host after its own was lost."""

    @workflow.run
    @abstractmethod
    async def run(self, request: RestoreDatabaseInput) -> None: ...
