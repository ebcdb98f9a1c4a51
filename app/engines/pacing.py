"""How fast a dump is read: as fast as it comes, or in small steps with pauses, so that clients find the host free."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class DumpStep:
    """One piece of reading."""

    size = 0
    """How many bytes the step read, where they are counted."""


class Pace:
    """The pace of a dump that somebody waits for: full speed."""

    @property
    def slow(self) -> bool:
        """Whether steps should be small now."""
        return False

    @asynccontextmanager
    async def step(self) -> AsyncIterator[DumpStep]:
        """Surrounds a block that has the host read something, and waits for it. While the pace is `slow`, the readers
        of a dump take turns, and a pause comes after each step."""
        yield DumpStep()
