"""Applying a blueprint to a database: the workflow, and its activities on the region's engine queue."""

from abc import ABC, abstractmethod
from datetime import timedelta
from enum import StrEnum

from temporalio import activity, workflow

from app.contracts.base import Contract
from app.contracts.databases import DatabaseWorkflowInput

SCRIPT_SECONDS = 900.0
"""How long all statements of one application may take together."""
APPLY_LIMIT = timedelta(seconds=2 * SCRIPT_SECONDS + 600)
"""Of the activity: a rehearsal and the script itself, what is copied and removed, and some room."""


class ApplicationStatus(StrEnum):
    """Interface specification, section 3.3."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    ROLLED_BACK = "rolled_back"


class ApplyBlueprintInput(DatabaseWorkflowInput, frozen=True, kw_only=True):
    """The SQL and the variables are read from our own database by the activity."""

    application: int


class ApplicationResult(Contract, frozen=True, kw_only=True):
    """How an application ended. Nothing of what was run: an engine's error may quote data."""

    status: ApplicationStatus
    statements_succeeded: int
    statements_total: int


class ApplicationActivities(ABC):
    """Both work as the tenant, under a lock of the database's applications. Both are safe to repeat, and record the
    end themselves: what was applied is never applied again."""

    @activity.defn(name="apply_blueprint")
    @abstractmethod
    async def apply_blueprint(self, application: int) -> ApplicationResult:
        """Runs it, or finds out what became of an attempt whose worker died."""

    @activity.defn(name="abandon_application")
    @abstractmethod
    async def abandon_application(self, application: int) -> ApplicationResult:
        """Runs nothing any more: finds out what became of it, and records that."""


@workflow.defn(name="ApplyBlueprint")
class ApplyBlueprint(ABC):
    """Applies one blueprint to one database, whatever becomes of workers and hosts meanwhile."""

    @workflow.run
    @abstractmethod
    async def run(self, request: ApplyBlueprintInput) -> None: ...
