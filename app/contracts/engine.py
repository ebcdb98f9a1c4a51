"""Activities that touch tenant engines. They run on the engine queue of the database's region."""

from abc import ABC, abstractmethod
from uuid import UUID

from temporalio import activity

from app.contracts.base import Contract

ENGINE_REFUSED = "EngineRefused"
"""Failure type: the host answered, and not as it should."""
HOST_UNAVAILABLE = "HostUnavailable"
"""Failure type: the host can't be reached or takes no work; another one may."""
NAME_TAKEN = "NameTaken"
"""Failure type: a stranger's object has the name on that host."""
NOT_WANTED = "NotWanted"
"""Failure type: our own row says that this work is no longer to be done, as after a deletion."""
STORE_UNAVAILABLE = "StoreUnavailable"
"""Failure type: our own database can't be reached; no host is to blame."""


class RemnantRef(Contract, frozen=True, kw_only=True):
    """Parts of a database on a host that is not, or no longer, its own."""

    database: UUID
    host_id: int
    name: str


class EngineActivities(ABC):
    """Each loads the database's row, opens its secrets, and works on its host under a lock of that database's,
    so that two attempts, or a create and a destroy, never interleave. All are safe to repeat."""

    @activity.defn(name="create_database")
    @abstractmethod
    async def create_database(self, database: UUID) -> None:
        """Makes role and database with their limits, proves it by logging in with the tenant's own credentials,
        writing and reading, and only then records it as active, with `database.provisioned`. Does nothing to one
        that is active already; fails with `NOT_WANTED` when it is deleted."""

    @activity.defn(name="apply_limits")
    @abstractmethod
    async def apply_limits(self, database: UUID) -> int:
        """Puts the row's present limits in force; returns the revision that it applied."""

    @activity.defn(name="apply_access")
    @abstractmethod
    async def apply_access(self, database: UUID) -> str:
        """Lets the tenant in, ends its access, or ends its writing, as the row has it now, and records that it is so: a
        database that resumes is active from then on, with `database.resumed`. Returns the state in words."""

    @activity.defn(name="revoke_access")
    @abstractmethod
    async def revoke_access(self, database: UUID) -> None:
        """When it returns, not one more statement of the tenant's succeeds, and for a deleted database that is
        recorded, under the lock that also holds off whatever would let the tenant in again. Fails with `NOT_WANTED`
        when the database is not deleted any more."""

    @activity.defn(name="destroy_database")
    @abstractmethod
    async def destroy_database(self, database: UUID) -> None:
        """Removes everything from the host. Refuses, with `NOT_WANTED`, a row that is not deleted, or whose grace
        period is not over."""

    @activity.defn(name="remove_remnant")
    @abstractmethod
    async def remove_remnant(self, remnant: RemnantRef) -> None:
        """Removes what lies under the name on that host, unless the database lives there by now."""
