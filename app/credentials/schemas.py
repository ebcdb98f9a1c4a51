"""The shapes of rotations, users and credentials on the wire."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from app.contracts.credentials import DatabaseUserStatus
from app.core.clock import Moment
from app.databases.schemas import Connections
from app.engines.base import Access

USER_NAME = r"[a-z][a-z0-9_-]{0,31}"
DEFAULT_OVERLAP_SECONDS = 86_400
LONGEST_OVERLAP_SECONDS = 604_800

UserName = Annotated[str, Meta(pattern=rf"\A{USER_NAME}\Z", min_length=1, max_length=32)]
"""Lowercase letters, digits, underscores and hyphens; starts with a letter."""
Overlap = Annotated[int, Meta(ge=0, le=LONGEST_OVERLAP_SECONDS)]


class RotateCredentials(Struct, kw_only=True, forbid_unknown_fields=True):
    """New credentials for a database. Without `overlap_seconds` the old ones work beside them for a day."""

    overlap_seconds: Overlap | UnsetType = UNSET
    end_sessions: bool | UnsetType = UNSET
    """Whether open sessions end with the overlap where the engine can't distinguish those of the previous password from
    others, so that all of them do."""


class CreateDatabaseUser(Struct, kw_only=True, forbid_unknown_fields=True):
    """A new user. Without `connection_limit` it may have a quarter of the connections that the database may have, and
    at least one."""

    name: UserName
    access: Access
    connection_limit: Connections | None = None
    expires_at: Annotated[datetime, Meta(tz=True)] | None = None


class RotateDatabaseUser(Struct, kw_only=True, forbid_unknown_fields=True):
    """A new password for a user. Without `end_sessions` open sessions go on until their clients end them."""

    end_sessions: bool | UnsetType = UNSET
    """Whether the user's open sessions end."""


class PreviousCredentials(Struct, kw_only=True):
    db_username: str
    retires_at: Moment | None
    """When they end; null until the new ones have been proven."""
    open_sessions: int | None
    """Of the previous credentials; null where the engine doesn't show it, or doesn't answer."""


class RotationView(Struct, kw_only=True):
    """A change of a database's credentials. The password is in the answer that made it, and nowhere else."""

    object: Literal["credential_rotation"] = "credential_rotation"
    uuid: UUID
    database_uuid: UUID
    status: Literal["pending", "overlapping", "completed", "cancelled"]
    db_username: str
    db_password: str | UnsetType = UNSET
    connection_string: str
    """With the password where `db_password` is, masked elsewhere."""
    previous: PreviousCredentials
    created_at: Moment
    completed_at: Moment | None


class DatabaseUserView(Struct, kw_only=True):
    """A further account of a database. The password is in the answer that made it, and nowhere else."""

    object: Literal["database_user"] = "database_user"
    database_uuid: UUID
    name: str
    db_username: str
    db_password: str | UnsetType = UNSET
    connection_string: str
    """With the password where `db_password` is, masked elsewhere."""
    access: Access
    connection_limit: int
    expires_at: Moment | None
    status: DatabaseUserStatus
    open_sessions: int | None
    """Null where the engine doesn't answer."""
    created_at: Moment


class RemovedDatabaseUser(Struct, kw_only=True):
    object: Literal["database_user"] = "database_user"
    database_uuid: UUID
    name: str
    deleted: bool = True


class CredentialView(Struct, kw_only=True):
    """One login of a database: its own, the one before it, or that of a user."""

    object: Literal["credential"] = "credential"
    database_uuid: UUID
    db_username: str
    user: str | None
    """The user whose login it is; null for the database's own."""
    access: Access
    status: Literal["active", "retiring", "revoked"]
    created_at: Moment
    retires_at: Moment | None
    """When it ends, or ended; null for one that has no end."""
    open_sessions: int | None
    """Null where the engine doesn't show it, or doesn't answer."""
