"""The workflows that change a database: their names, inputs and results.

The classes are interfaces. Callers start a workflow through its interface; `workflows/` holds the implementations.
"""

from abc import ABC, abstractmethod
from datetime import datetime
from uuid import UUID

from temporalio import workflow

from app.contracts.base import Contract, Engine, WorkflowInput


class DatabaseWorkflowInput(WorkflowInput, frozen=True, kw_only=True):
    """The part of the input that all workflows about one database have: enough to find it and to route to its
    region."""

    database: UUID
    engine: Engine
    region: str
    team_id: int | None
    """None for a database of the warm pool."""


class Placement(Contract, frozen=True, kw_only=True):
    """The host and name of a database that is being provisioned."""

    host_id: int
    address: str
    """The host's `host:port`, for display."""
    name: str
    """The name of the database and its role on the host."""


class ProvisionDatabaseInput(DatabaseWorkflowInput, frozen=True, kw_only=True):
    """The activities read credentials and limits from our own database."""

    placement: Placement
    """The first place; for a run that continues one with a long history, the latest."""
    round: int = 0
    """Rounds of attempts that have failed in this place."""
    cancelled: bool = False
    """True when the provisioning was cancelled: what was created is removed."""
    restoration: UUID | None = None
    """The restoration that fills it, if it is not to be empty."""


ROW_CHANGED = "look_again"
"""The signal to `DeleteDatabase` that its row was changed: the data is to be destroyed at another time, or kept."""


class DeleteDatabaseInput(DatabaseWorkflowInput, frozen=True, kw_only=True):
    destroy_at: datetime
    """The end of the grace period when the deletion was requested, in UTC. Later changes are read from the row."""
    cancel_provisioning: bool
    """A provisioning was still running when the deletion was requested."""


class ApplyLimitsInput(DatabaseWorkflowInput, frozen=True, kw_only=True):
    revision: int
    """The revision of the limits that requested this run. The run applies the newest."""


class ApplyAccessInput(DatabaseWorkflowInput, frozen=True, kw_only=True):
    revision: int
    """The revision of the access state that requested this run. The run applies the newest."""


class RemoveRemnantInput(DatabaseWorkflowInput, frozen=True, kw_only=True):
    """Of `CloseRemnant` too."""

    host_id: int
    """The abandoned host, which may still have parts of the database."""
    name: str
    """The name of those parts on that host."""


@workflow.defn(name="ProvisionDatabase")
class ProvisionDatabase(ABC):
    """Creates a database and verifies it by logging in. It never fails: it retries, moves to another host, or is
    cancelled."""

    @workflow.run
    @abstractmethod
    async def run(self, request: ProvisionDatabaseInput) -> None: ...


@workflow.defn(name="DeleteDatabase")
class DeleteDatabase(ABC):
    """Ends all access, keeps the data until the time in the row, then destroys it. Ends early when the database is
    undeleted. On the signal `ROW_CHANGED` it reads the row again."""

    @workflow.run
    @abstractmethod
    async def run(self, request: DeleteDatabaseInput) -> None: ...


@workflow.defn(name="ApplyLimits")
class ApplyLimits(ABC):
    """Applies changed limits on the engine."""

    @workflow.run
    @abstractmethod
    async def run(self, request: ApplyLimitsInput) -> None: ...


@workflow.defn(name="ApplyAccess")
class ApplyAccess(ABC):
    """Applies a pause, a resumption, a freeze or a thaw on the engine."""

    @workflow.run
    @abstractmethod
    async def run(self, request: ApplyAccessInput) -> None: ...


@workflow.defn(name="RemoveRemnant")
class RemoveRemnant(ABC):
    """Removes what a failed attempt left on an abandoned host, once that host is available again."""

    @workflow.run
    @abstractmethod
    async def run(self, request: RemoveRemnantInput) -> None: ...


@workflow.defn(name="CloseRemnant")
class CloseRemnant(ABC):
    """Ends access to what a moved database left on its lost host, once that host is available again. Its data stays: it
    may be newer than what the database has elsewhere."""

    @workflow.run
    @abstractmethod
    async def run(self, request: RemoveRemnantInput) -> None: ...
