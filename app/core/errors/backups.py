"""Errors of backups."""

from datetime import datetime
from types import MappingProxyType
from uuid import UUID

from app.core.errors.base import AppError


class BackupNotCompleted(AppError):
    """The backup is not, or no longer, one that can be restored or tested."""

    code, status = "backup_not_completed", 422
    example_details = MappingProxyType({"status": "running"})

    def __init__(self, status: str) -> None:
        """`status` is the status of the backup."""
        super().__init__(f"The backup is {status}, not completed.", details={"status": status})


class BackupIncompatible(AppError):
    """The backup is of another engine than the database that it is to become, or of a newer version than its host."""

    code, status = "backup_incompatible", 422
    example_details = MappingProxyType({"engine": "postgres", "engine_version": "18.6"})

    def __init__(self, message: str, *, engine: str, engine_version: str) -> None:
        """Engine and version of the server that the backup was taken of."""
        super().__init__(message, details={"engine": engine, "engine_version": engine_version})


class BackupInUse(AppError):
    """Something else needs this backup: a restore, before it or from it, or the destruction of its database."""

    code, status = "backup_in_use", 409
    example_details = MappingProxyType({"kind": "before_restore"})

    def __init__(self, kind: str) -> None:
        """`kind` is the kind of the backup."""
        super().__init__(
            "Something else waits for this backup. It can be deleted when it has ended.", details={"kind": kind}
        )


class BackupBeingRestored(AppError):
    """A restore that is under way needs this backup. The operation named in `details` does it, on that database."""

    code, status = "backup_being_restored", 409
    example_details = MappingProxyType(
        {
            "database_uuid": "0b7c9d52-6f1e-4a3b-8c2d-5e4f60718293",
            "operation_uuid": "7f6c2b1e-4d0a-4c8e-9b57-3a1f2e6d8c90",
        }
    )

    def __init__(self, database: UUID, operation: UUID | None) -> None:
        super().__init__(
            "A restore that is under way needs this backup. It can be deleted when that has ended.",
            details={
                "database_uuid": str(database),
                "operation_uuid": None if operation is None else str(operation),
            },
        )


class BackupProtected(AppError):
    """The store keeps this backup until its `expires_at`, by Object Lock: nobody can delete it before."""

    code, status = "backup_locked", 409
    example_details = MappingProxyType({"until": "2026-12-20T08:00:00+00:00"})

    def __init__(self, until: datetime) -> None:
        super().__init__(
            "The store of backups keeps this backup until it expires.", details={"until": until.isoformat()}
        )
