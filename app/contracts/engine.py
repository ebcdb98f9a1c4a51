"""Activities that work on tenant engines. They run on the engine queue of the database's region."""

from abc import ABC, abstractmethod
from datetime import timedelta
from uuid import UUID

from temporalio import activity

from app.contracts.base import Contract

ENGINE_REFUSED = "EngineRefused"
"""Failure type: the host answered with an error."""
HOST_UNAVAILABLE = "HostUnavailable"
"""Failure type: the host can't be reached or accepts no work. Another host may."""
HOST_REMOVED = "HostRemoved"
"""Failure type: an operator has removed the host since the row was read. The next attempt reads where the database lies
by now."""
HOST_FULL = "HostFull"
"""Failure type: the host lacks room for the data that it is to take."""
NAME_TAKEN = "NameTaken"
"""Failure type: the name exists on that host and isn't ours."""
NOT_WANTED = "NotWanted"
"""Failure type: our own row says that this work is no longer needed, as after a deletion."""
STORE_UNAVAILABLE = "StoreUnavailable"
"""Failure type: our own database can't be reached. No host is to blame."""


class RemnantRef(Contract, frozen=True, kw_only=True):
    """Parts of a database on a host that isn't its host (any more)."""

    database: UUID
    host_id: int
    name: str


DESTRUCTION_LIMIT = timedelta(minutes=10)
"""Of one attempt: a tenant may have made a hundred thousand tables, and each that is gone stays gone."""


class EngineActivities(ABC):
    """Each activity reads the database's row, opens its secrets, and works on the host while it holds the lock of that
    database, so that two attempts, or a create and a destroy, never overlap. All are safe to repeat."""

    @activity.defn(name="create_database")
    @abstractmethod
    async def create_database(self, database: UUID) -> None:
        """Creates role and database with their limits, and verifies them: logs in with the tenant's credentials, writes
        and reads. Only then records the database as active, with the event `database.provisioned`. Does nothing when it
        is active already. One that is to be filled is made closed instead, and stays `provisioning`. Fails with
        `NOT_WANTED` when it is deleted."""

    @activity.defn(name="apply_limits")
    @abstractmethod
    async def apply_limits(self, database: UUID) -> int:
        """Applies the row's current limits; returns their revision."""

    @activity.defn(name="apply_access")
    @abstractmethod
    async def apply_access(self, database: UUID) -> str:
        """Applies the access state of the row: lets the tenant in, ends its access, or ends its writes. Records that it
        did: a resuming database becomes active, with the event `database.resumed`. Returns the state for display."""

    @activity.defn(name="revoke_access")
    @abstractmethod
    async def revoke_access(self, database: UUID) -> None:
        """Ends all access: when it returns, no further statement of the tenant succeeds. For a deleted database it
        records this under the database's lock, which also excludes every step that would let the tenant in again. Fails
        with `NOT_WANTED` when the database is no longer deleted."""

    @activity.defn(name="destroy_database")
    @abstractmethod
    async def destroy_database(self, database: UUID) -> None:
        """Removes everything from the host. Fails with `NOT_WANTED` when the row is not deleted, or its grace period
        isn't over."""

    @activity.defn(name="remove_remnant")
    @abstractmethod
    async def remove_remnant(self, remnant: RemnantRef) -> None:
        """Removes what has that name on that host, unless the database is placed there by now. Does nothing on a host
        that was removed."""

    @activity.defn(name="close_remnant")
    @abstractmethod
    async def close_remnant(self, remnant: RemnantRef) -> None:
        """Ends all access to what has that name there, in the same cases. Its data stays."""
