"""Turns for reading large scripts. A megabyte of SQL takes the parsers seconds, in which Python lets nothing else
compute, and some of it is read within a transaction: without turns one team could keep everybody waiting."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import UUID

from app.auth.principal import Principal
from app.blueprints import records
from app.core.limiter import Limiter

LARGE_BYTES = 32 * 1024
"""Anything smaller takes a fraction of a second, and needs no turn."""
_AT_ONCE = 2
"""In one process."""


class Turns:
    """Each team has one at a time, so that the others needn't queue behind all that it sends."""

    def __init__(self) -> None:
        self._slots = Limiter[int](1, total=_AT_ONCE)

    @asynccontextmanager
    async def turn(self, team_ids: Sequence[int], size: int) -> AsyncIterator[AsyncExitStack]:
        """For the block, or until what it gives is closed. Take it before a transaction is begun: waiting for one
        holds none open. `size` is the script's, in bytes; `team_ids` are the caller's, the primary one first."""
        async with AsyncExitStack() as held:
            if size >= LARGE_BYTES:
                # Whoever is in no team shares a turn with all such; they may only validate.
                await held.enter_async_context(self._slots.slot(team_ids[0] if team_ids else 0))
            yield held


TURNS = Turns()
"""This process's."""


async def size_to_prepare(principal: Principal, blueprint: UUID) -> int:
    """Bytes that are read when the blueprint is applied: none of one without variables, whose SQL was read when it was
    saved."""
    record = await records.find_visible(blueprint, principal.team_ids)
    return record.size_bytes if record is not None and record.variables else 0
