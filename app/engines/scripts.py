"""Running a tenant's script as the tenant, so that a worker which dies leaves no doubt about what became of it."""

from abc import ABC, abstractmethod
from enum import StrEnum


class ScriptEnd(StrEnum):
    """What became of a script whose worker died."""

    COMMITTED = "committed"
    UNDONE = "undone"
    UNKNOWN = "unknown"
    """The session is over, and the engine doesn't tell how far it came."""


class ScriptSession(ABC):
    """The tenant's own session for one script."""

    @abstractmethod
    async def begin(self) -> str:
        """What names this session, or its transaction, to `EngineAdapter.end_script`. Keep it before the first
        statement."""

    @abstractmethod
    async def run(self, statement: str, seconds: float) -> int | None:
        """Rows that were changed or found, where the server tells. Raises `StatementFailed`, also after a statement
        that changes how the server would read the next one; `StatementUncertain` when nobody can tell any more what of
        the script lasts; `HostUnavailable` when the session was lost."""

    @abstractmethod
    async def commit(self) -> None:
        """Makes all of it last, where it didn't at once. Raises as `run` does."""

    @abstractmethod
    async def roll_back(self, *, checked: bool) -> None:
        """Undoes all of it; `checked` asks first what a commit would ask. Raises as `run` does. Only where scripts are
        transactions."""
