"""How many large scripts are read at the same time. A megabyte of SQL takes the parsers seconds, in which Python lets
nothing else compute, and some of it is read within a transaction: without a bound one team could keep everybody
waiting."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import UUID

from app.auth.principal import Principal
from app.blueprints import records
from app.core.limiter import Limiter

LARGE_BYTES = 32 * 1024
"""Anything smaller takes a fraction of a second, and needs no slot."""
_OF_ONE_TEAM, _OF_ALL = 1, 2
"""In one process."""


class LargeScripts:
    """Each team has one slot, so that the others needn't queue behind all that it sends."""

    def __init__(self) -> None:
        self._slots = Limiter[int](_OF_ONE_TEAM, total=_OF_ALL)

    @asynccontextmanager
    async def slot(self, team_ids: Sequence[int], size: int) -> AsyncIterator[None]:
        """For the block. Take it before a transaction is begun: waiting for one
        holds none open. `size` is the script's, in bytes; `team_ids` are the caller's, the primary one first."""
        async with AsyncExitStack() as held:
            if size >= LARGE_BYTES:
                # Whoever is in no team shares a slot with all such; they may only validate.
                await held.enter_async_context(self._slots.slot(team_ids[0] if team_ids else 0))
            yield


async def size_to_prepare(principal: Principal, blueprint: UUID) -> int:
    """Bytes that are read when the blueprint is applied: none of one without variables, whose SQL was read when it was
    saved."""
    record = await records.find_visible(blueprint, principal.readable_teams)
    return record.size_bytes if record is not None and record.variables else 0
