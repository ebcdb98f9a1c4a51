"""Applying a blueprint to a database: the workflow, and its activities on the region's engine queue."""

from abc import ABC, abstractmethod
from datetime import timedelta
from enum import StrEnum

from temporalio import activity, workflow

from app.contracts.base import Contract
from app.contracts.databases import DatabaseWorkflowInput

SCRIPT_SECONDS = 900.0
"""The time limit of all statements of one application together."""
APPLY_LIMIT = timedelta(seconds=2 * SCRIPT_SECONDS + 600)
"""The time limit of the activity: twice the script's (a rehearsal, then the run), plus copying and clean-up."""


class ApplicationStatus(StrEnum):
    """The status of an application: `pending` until its turn, then `running`; it ends as `completed`, as `failed` or,
    a dry run, as `rolled_back`."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    ROLLED_BACK = "rolled_back"


class ApplyBlueprintInput(DatabaseWorkflowInput, frozen=True, kw_only=True):
    """The activity reads the SQL and the variables from our own database."""

    application: int
    cancelled: bool = False
    """True when it was cancelled: no more of it is run, and how far it came is recorded."""


class ApplicationResult(Contract, frozen=True, kw_only=True):
    """How an application ended. It holds nothing that was run, because an engine's error message may quote data."""

    status: ApplicationStatus
    statements_succeeded: int
    statements_total: int


class ApplicationActivities(ABC):
    """Both run as the tenant, under the lock for applications to the database. Both are safe to repeat, and both record
    the outcome: a script that was applied is never applied again."""

    @activity.defn(name="apply_blueprint")
    @abstractmethod
    async def apply_blueprint(self, application: int) -> ApplicationResult:
        """Runs the script, unless its cancellation was requested. After a worker died, finds out first what became of
        its attempt."""

    @activity.defn(name="abandon_application")
    @abstractmethod
    async def abandon_application(self, application: int) -> ApplicationResult:
        """Runs no more statements: finds out how far the script came, and records that."""


@workflow.defn(name="ApplyBlueprint")
class ApplyBlueprint(ABC):
    """Applies one blueprint to one database, and survives the loss of workers and hosts."""

    @workflow.run
    @abstractmethod
    async def run(self, request: ApplyBlueprintInput) -> None: ...
