"""Errors of rotations and of databases' users."""

from types import MappingProxyType
from uuid import UUID

from app.core.errors.base import AppError

_UUID = "0b8f3c52-5a1e-4f0e-9d0f-2a7c1f3e6b55"


class RotationInProgress(AppError):
    """The database's last rotation has not ended: its overlap goes on, or its engine has still to follow."""

    code, status = "rotation_in_progress", 409
    example_details = MappingProxyType({"rotation_uuid": _UUID})

    def __init__(self, rotation: UUID) -> None:
        super().__init__(
            "A rotation of this database's credentials is under way. Complete it first, or wait for its end.",
            details={"rotation_uuid": str(rotation)},
        )


class RotationNotOverlapping(AppError):
    """The overlap of a rotation is to end that has not begun, or never will."""

    code, status = "rotation_not_overlapping", 409
    example_details = MappingProxyType({"status": "pending"})

    def __init__(self, status: str) -> None:
        """`status` is the status of the rotation."""
        super().__init__(f"The rotation is {status}: there is no overlap to end.", details={"status": status})


class RotationCancelled(AppError):
    """The rotation was cancelled before a login had proven the new credentials. The previous ones stay."""

    code, status = "rotation_cancelled", 409
    example_details = MappingProxyType({"rotation_uuid": _UUID})

    def __init__(self, rotation: UUID) -> None:
        super().__init__(
            "The rotation was cancelled; the credentials stay as they were.", details={"rotation_uuid": str(rotation)}
        )


class UserRotationNotInForce(AppError):
    """A user's rotation was cancelled before a login had proven the new password, or another one has followed it."""

    code, status = "user_rotation_not_in_force", 409
    example_details = MappingProxyType({"name": "reporting"})

    def __init__(self, name: str) -> None:
        """`name` is the user's."""
        super().__init__(
            "The rotation was cancelled, or another one has followed it: the password that it made doesn't work.",
            details={"name": name},
        )


class CredentialsPending(AppError):
    """A change of credentials or users was accepted and goes on, but the engine has not followed yet."""

    code, status = "credentials_pending", 503

    def __init__(self) -> None:
        super().__init__(
            "The change is recorded, but the database's engine has not confirmed it yet. "
            "The work goes on; retry with the same Idempotency-Key to learn of its end.",
            headers={"Retry-After": "5"},
        )


class UserExists(AppError):
    """The database has a user of this name, which may be on its way out."""

    code, status = "user_exists", 409
    example_details = MappingProxyType({"name": "reporting", "status": "active"})

    def __init__(self, name: str, status: str) -> None:
        """`status` is the status of that user."""
        super().__init__("The database has a user of this name.", details={"name": name, "status": status})


class UserNotActive(AppError):
    """The user of the database is being made, rotated or removed."""

    code, status = "user_not_active", 409
    example_details = MappingProxyType({"name": "reporting", "status": "rotating"})

    def __init__(self, name: str, status: str) -> None:
        """`status` is the status of that user."""
        super().__init__(
            f"The user is {status}, not active: try again when that has ended.",
            details={"name": name, "status": status},
        )
