"""The shapes of backups on the wire."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from app.contracts.backups import BackupKind, BackupStatus, ProofStatus
from app.contracts.base import Engine
from app.core.clock import Moment

MOST_DAYS = 3650
Description = Annotated[str, Meta(max_length=255, pattern=r"\A[^\x00]*\Z")]
Days = Annotated[int, Meta(ge=1, le=MOST_DAYS)]


class TakeBackup(Struct, kw_only=True, forbid_unknown_fields=True):
    description: Description | None = None
    keep_days: Days | None = None
    """How long it is kept; without it, until it is deleted."""


class ChangeBackupPolicy(Struct, kw_only=True, forbid_unknown_fields=True):
    """At least one field is given. One that is left out stays as it is; null returns it to the plan's."""

    enabled: bool | UnsetType | None = UNSET
    every_hours: Annotated[int, Meta(ge=1, le=720)] | UnsetType | None = UNSET
    keep_days: Days | UnsetType | None = UNSET
    keep_last: Annotated[int, Meta(ge=1, le=1000)] | UnsetType | None = UNSET
    """The least number of completed ones that stay, whatever their age."""
    test_every_days: Annotated[int, Meta(ge=1, le=365)] | UnsetType | None = UNSET


class BackupPolicyView(Struct, kw_only=True):
    """When backups are taken and tested, and how long they are kept: the plan's, where the database has nothing else.
    Times to come are null where nothing is to come."""

    object: Literal["backup_policy"] = "backup_policy"
    database_uuid: UUID
    enabled: bool
    every_hours: int
    keep_days: int
    keep_last: int
    test_every_days: int
    next_backup_at: Moment | None
    next_test_at: Moment | None


class BackupStorage(Struct, kw_only=True):
    """What a team's completed backups take in the store, and how much its tier has them take."""

    object: Literal["backup_storage"] = "backup_storage"
    team_id: int
    backups: int
    stored_bytes: int
    limit_bytes: int


class Difference(Struct, frozen=True, kw_only=True):
    """One object that a restore brought back otherwise. Null where it was, or is, not there."""

    name: str
    kind: str
    expected_rows: int | None
    restored_rows: int | None


class ProofView(Struct, kw_only=True):
    """What restoring a backup has shown. `differences` has the first hundred."""

    status: ProofStatus
    proven_at: Moment | None
    restore_seconds: float | None
    tables: int | None
    rows: int | None
    differences: list[Difference]
    error: str | None = None


class BackupView(Struct, kw_only=True):
    """A backup. `size_bytes` is the dump's length, `stored_bytes` what it takes in the store."""

    object: Literal["backup"] = "backup"
    uuid: UUID
    database_uuid: UUID
    database_name: str
    team_id: int
    db_type: Engine
    engine_version: str | None
    kind: BackupKind
    status: BackupStatus
    description: str | None
    consistent_at: Moment | None
    size_bytes: int | None
    stored_bytes: int | None
    tables: int | None
    rows: int | None
    proof: ProofView
    expires_at: Moment | None
    error: str | None
    created_at: Moment
    completed_at: Moment | None


class DeletedBackup(Struct, kw_only=True):
    """A backup that was deleted: nothing can be restored from it, and its objects are removed from the store."""

    object: Literal["backup"] = "backup"
    uuid: UUID
    deleted: bool = True
