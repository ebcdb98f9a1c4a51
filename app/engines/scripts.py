"""Running a tenant's script as the tenant, so that its outcome can be found out even if the worker dies."""

from abc import ABC, abstractmethod
from enum import StrEnum


class ScriptEnd(StrEnum):
    """The outcome of a script whose worker died."""

    COMMITTED = "committed"
    UNDONE = "undone"
    UNKNOWN = "unknown"
    """The session is over, and the engine doesn't report how far the script came."""


class ScriptSession(ABC):
    """A session of the tenant for one script."""

    @abstractmethod
    async def begin(self) -> str:
        """Returns the reference to this session, or its transaction, for `EngineAdapter.end_script`. Store it before
        the first statement."""

    @abstractmethod
    async def run(self, statement: str, seconds: float) -> int | None:
        """The number of rows changed or found, if the server reports it. Raises `StatementFailed`, also after a
        statement that changes how the server would read the next one; `StatementUncertain` when nobody knows which
        effects of the script are permanent; `HostUnavailable` when the session was lost."""

    @abstractmethod
    async def commit(self) -> None:
        """Makes all effects permanent, if they aren't already. Raises like `run`."""

    @abstractmethod
    async def roll_back(self, *, checked: bool) -> None:
        """Undoes all effects; with `checked`, first checks what a commit would check. Raises like `run`. Only for
        transactional scripts."""
