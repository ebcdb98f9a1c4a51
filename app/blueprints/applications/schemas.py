"""The shapes of applications on the wire. Interface specification, sections 2.5, 4.10 and 4.11."""

from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from app.contracts.applications import ApplicationStatus
from app.core.clock import Moment

Values = dict[str, Any]


class StatementStatus(StrEnum):
    """`unknown`: it was begun, and whether it took effect is unknown."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


class StatementError(Struct, kw_only=True, frozen=True):
    """The engine's error: an SQLSTATE or a MySQL error number, and its message."""

    code: str | None
    message: str


class LogEntry(Struct, kw_only=True, frozen=True):
    """One statement. `note` says what was rolled back, what stays, and where it ran if not in the database."""

    index: int
    line: int
    kind: str
    sql: str
    """Shortened, and without secret values."""
    status: StatementStatus
    rows: int | None
    duration_ms: int | None
    error: StatementError | None
    note: str | None


class ApplyToDatabase(Struct, kw_only=True, forbid_unknown_fields=True):
    blueprint_uuid: UUID
    variables: Values | None = None
    dry_run: bool = False
    wait: bool = True
    timeout: Annotated[int, Meta(ge=1, le=120)] = 30


class ApplicationView(Struct, kw_only=True):
    """A BlueprintApplication."""

    object: Literal["blueprint_application"] = "blueprint_application"
    id: int
    blueprint_id: int
    blueprint_uuid: UUID
    blueprint_version: int
    database_instance_id: int
    database_uuid: UUID
    database_name: str
    status: ApplicationStatus
    is_dry_run: bool
    execution_log: list[LogEntry] | None
    total_duration_ms: int | None
    statements_total: int
    statements_succeeded: int
    statements_failed: int
    error_message: str | None
    variable_values: dict[str, Any] | None
    """Secret ones are masked."""
    sql_content: str | UnsetType = UNSET
    """The SQL of the version that was applied; on single get only."""
    started_at: Moment | None
    completed_at: Moment | None
    created_at: Moment
