"""Changes of a database's credentials and of its users: the workflow that brings them to the engine."""

from abc import ABC, abstractmethod
from enum import StrEnum
from uuid import UUID

from temporalio import activity, workflow

from app.contracts.databases import DatabaseWorkflowInput


class RotationStatus(StrEnum):
    """The status of a rotation. `pending` and `cancelling` may have left something on the engine that nobody uses."""

    PENDING = "pending"
    """Accepted; a login with the new credentials has not succeeded yet."""
    OVERLAPPING = "overlapping"
    """The new credentials are the database's, and the previous ones still work."""
    RETIRING = "retiring"
    """The overlap is over, and the engine is to refuse the previous ones."""
    COMPLETED = "completed"
    CANCELLING = "cancelling"
    """It is not to be, and the engine is to refuse the new ones."""
    CANCELLED = "cancelled"


class DatabaseUserStatus(StrEnum):
    CREATING = "creating"
    ACTIVE = "active"
    ROTATING = "rotating"
    """A login with its new password has not succeeded yet. The previous one may be refused already."""
    REMOVING = "removing"


class ApplyCredentialsInput(DatabaseWorkflowInput, frozen=True, kw_only=True):
    revision: int
    """The revision of the credentials that requested this run. The run applies the newest state."""


class CredentialActivities(ABC):
    """On the engine queue of the database's region."""

    @activity.defn(name="apply_credentials")
    @abstractmethod
    async def apply_credentials(self, database: UUID) -> str:
        """Brings the database's rotation and users on its engine to what their rows say, under the database's lock:
        adds and proves new credentials, ends previous ones, makes and removes users and gives them new passwords. Safe
        to repeat. Returns the state for display. Fails with `NOT_WANTED` when nothing is left of the database."""


@workflow.defn(name="ApplyCredentials")
class ApplyCredentials(ABC):
    """Applies a change of a database's credentials or users on its engine."""

    @workflow.run
    @abstractmethod
    async def run(self, request: ApplyCredentialsInput) -> None: ...
