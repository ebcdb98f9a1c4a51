"""Errors of databases, plans and engine hosts."""

from types import MappingProxyType
from uuid import UUID

from app.core.errors.base import AppError


class PlanLimitExceeded(AppError):
    """The team's tier or the database's plan doesn't allow it."""

    code, status = "plan_limit_exceeded", 422
    example_details = MappingProxyType({"field": "plan"})

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message, details={"field": field})


class CapacityExhausted(AppError):
    """No engine host has room; nothing was made. Another region may serve, or the same one later."""

    code, status, transient = "capacity_exhausted", 422, True
    example_details = MappingProxyType({"field": "region"})

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message, details={"field": field})


class SearchTooWide(AppError):
    """The filters match few of very many databases: finding them would mean to look at too many. A name or a label
    that fewer databases have narrows the search, and so does a key for one team."""

    code, status = "search_too_wide", 422

    def __init__(self) -> None:
        super().__init__("Too many databases would have to be looked at. Add a name or a label that few of them have.")


class DatabaseNotActive(AppError):
    """The database is being provisioned or is paused, so nothing can be run on it now."""

    code, status = "database_not_active", 422
    example_details = MappingProxyType({"status": "paused"})

    def __init__(self, status: str) -> None:
        """`status` is the status of the database."""
        super().__init__(f"The database is {status}, not active.", details={"status": status})


class PausedOtherwise(AppError):
    """An operator paused the database, or its plan did: the team can't lift that, nor take its place."""

    code, status = "paused_otherwise", 409
    example_details = MappingProxyType({"reason": "operator"})

    def __init__(self, reason: str) -> None:
        """`reason` is why it is paused."""
        super().__init__(
            f"The database is paused, not by its team ({reason}): the team can't lift that.", details={"reason": reason}
        )


class DeletionProtected(AppError):
    """The database has `deletion_protection`: it can't be deleted before that is taken away."""

    code, status = "deletion_protected", 409

    def __init__(self) -> None:
        super().__init__("The database is protected: it can be deleted when its deletion_protection is false.")


class RestorationInProgress(AppError):
    """The database's data is about to be exchanged, or is being. The operation named in `details` does it."""

    code, status = "restoration_in_progress", 409
    example_details = MappingProxyType({"operation_uuid": "7f6c2b1e-4d0a-4c8e-9b57-3a1f2e6d8c90"})

    def __init__(self, operation: UUID | None) -> None:
        super().__init__(
            "The database is being restored.", details={"operation_uuid": None if operation is None else str(operation)}
        )


class RestorationFailed(AppError):
    """The restore that was waited for has ended otherwise. The database's data is what it was before."""

    code, status = "restoration_failed", 422
    example_details = MappingProxyType(
        {"operation_uuid": "7f6c2b1e-4d0a-4c8e-9b57-3a1f2e6d8c90", "reason": "backup_damaged"}
    )

    def __init__(self, operation: UUID, reason: str | None) -> None:
        """`reason` is the code of the operation's reason."""
        super().__init__(
            "The restore did not succeed; the data is what it was before.",
            details={"operation_uuid": str(operation), "reason": reason},
        )


class DeletionUndone(AppError):
    """The deletion that this key began was undone before it had answered. The database is not deleted."""

    code, status = "deletion_undone", 409

    def __init__(self) -> None:
        super().__init__("This deletion was undone by an undeletion. A new Idempotency-Key deletes the database.")


class DatabaseNotDeleted(AppError):
    """The database is to be undeleted, and is not deleted."""

    code, status = "not_deleted", 409
    example_details = MappingProxyType({"status": "active"})

    def __init__(self, status: str) -> None:
        """`status` is the status of the database."""
        super().__init__(f"The database is {status}, not deleted.", details={"status": status})


class DatabaseDestroyed(AppError):
    """The database is to be undeleted, and its grace period is over: its data is gone, or about to go."""

    code, status = "database_destroyed", 409

    def __init__(self) -> None:
        super().__init__("The database's grace period is over; its data is destroyed.")


class DeletionsPending(AppError):
    """The team deleted more databases than its tier has it keep, and those beyond are still being destroyed. A create
    finds room when they are; nothing was made."""

    code, status = "deletions_pending", 429
    example_details = MappingProxyType({"deleted_databases": 4, "limit": 3})

    def __init__(self, held: int, limit: int) -> None:
        """`held` is the number of deleted databases that still have parts on a host."""
        super().__init__(
            "Deleted databases of this team are still being destroyed. Try again in a moment.",
            details={"deleted_databases": held, "limit": limit},
            headers={"Retry-After": "2"},
        )


class RevocationPending(AppError):
    """A deletion was accepted and goes on, but the engine has not ended all access yet."""

    code, status = "revocation_pending", 503

    def __init__(self, message: str) -> None:
        super().__init__(message, headers={"Retry-After": "5"})


class DatabaseUnreachable(AppError):
    """The database's engine host doesn't answer, or takes no more connections at the moment."""

    code, status = "database_unreachable", 503

    def __init__(self, message: str) -> None:
        super().__init__(message, headers={"Retry-After": "5"})
