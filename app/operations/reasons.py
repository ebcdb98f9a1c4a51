"""Why an operation waits, or ended otherwise than it was asked for: a closed set.

The sentences are ours alone. What an engine, a driver or a tenant said may quote anything, so none of it gets here.
"""

from datetime import datetime
from enum import StrEnum

import msgspec

from app.core.clock import Moment


class ReasonCode(StrEnum):
    """A reason, and the sentence that says it."""

    message: str

    def __new__(cls, code: str, message: str) -> "ReasonCode":
        member = str.__new__(cls, code)
        member._value_ = code
        member.message = message
        return member

    HOST_UNAVAILABLE = "host_unavailable", "The database's host can't be reached, or takes no work at the moment."
    HOST_LOST = "host_lost", "The database's host was lost, and the database is made again on another one."
    HOST_FULL = "host_full", "The database's host lacks room or memory for the data."
    HOST_TOO_SLOW = "host_too_slow", "The database's host did not finish the step in time."
    ENGINE_REFUSED = "engine_refused", "The engine answered the step with an error."
    NAME_TAKEN = "name_taken", "The name was taken on the host; another one is chosen."
    STORE_UNAVAILABLE = "store_unavailable", "The service's own database didn't answer, or another step holds the lock."
    STEP_FAILED = "step_failed", "The step failed for a reason that the service's log has."
    BACKUP_STORE_UNAVAILABLE = "backup_store_unavailable", "The store of backups can't be reached, or has no room."
    BACKUP_STORE_REFUSED = "backup_store_refused", "The store of backups refuses the service; operators have to act."
    WORKFLOWS_UNAVAILABLE = "workflows_unavailable", "The service that runs workflows can't be reached."
    NO_WORKER = "no_worker", "No worker has taken the next step yet, or the one that had it stopped."
    QUEUED = "queued", "Something else has to end first."
    GRACE_PERIOD = "grace_period", "Access has ended, and the data is kept for a while."
    CANCELLING = "cancelling", "It was asked to stop, and finds out how far it came."
    CANCELLED = "cancelled", "It was cancelled."
    SUPERSEDED = "superseded", "A later change of the same thing took its place."
    DATABASE_DELETED = "database_deleted", "The database was deleted before it had ended."
    DATABASE_DROPPED = "database_dropped", "Its tenant dropped the database itself: nothing is left to back up."
    DATABASE_PAUSED = "database_paused", "The database was paused before it had ended."
    UNDELETED = "undeleted", "The database was undeleted."
    BACKUP_DAMAGED = "backup_damaged", "The backup is damaged: what is stored of it is not what was written."
    BACKUP_MISSING = "backup_missing", "The backup is gone."
    BACKUP_UNMADE = "backup_unmade", "The backup of what there was could not be made, so nothing was touched."
    BACKUP_IDENTITY_NEEDED = "backup_identity_needed", "The backup can be read only with an identity that is not here."
    FINAL_BACKUP_PENDING = "final_backup_pending", "The data is kept until its final backup is there."
    FINAL_BACKUP_FAILED = "final_backup_failed", "The final backup failed, and is tried again; the data is kept."
    LOAD_REFUSED = "load_refused", "The engine doesn't take the data."
    DATA_NOT_BACK = "data_not_back", "What there was can't be loaded back from its backup yet; operators have to act."
    SOURCE_UNAVAILABLE = "source_unavailable", "The database that is cloned can't be read at the moment."
    SOURCE_GONE = "source_gone", "The database that was cloned is deleted."
    BACKUP_FAILED = "backup_failed", "The backup could not be taken; its record says why."
    APPLICATION_FAILED = "application_failed", "The script was not applied; the application's record says why."


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """A reason, as clients see it."""

    code: ReasonCode
    message: str
    retryable: bool
    """It is tried again by itself."""
    next_attempt_at: Moment | None = None

    def is_after(self, moment: datetime) -> bool:
        """Whether the next attempt is still to come then."""
        return self.retryable and self.next_attempt_at is not None and self.next_attempt_at > moment


def reason(code: ReasonCode, *, retryable: bool = False, next_attempt_at: datetime | None = None) -> Reason:
    return Reason(code=code, message=code.message, retryable=retryable, next_attempt_at=next_attempt_at)
