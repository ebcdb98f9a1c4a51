"""Taking and proving backups: the workflows, and their activities on the backup queue of the database's region."""

from enum import StrEnum

BACKUP_STORE_UNAVAILABLE = "BackupStoreUnavailable"
"""Failure type: the store of backups doesn't answer."""
BACKUP_STORE_REFUSED = "BackupStoreRefused"
"""Failure type: the store of backups answered that it won't."""


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
    """What is known of a backup by restoring it. `failed`: the restore did not succeed, so nothing was compared."""

    PENDING = "pending"
    RUNNING = "running"
    PROVEN = "proven"
    MISMATCH = "mismatch"
    FAILED = "failed"
