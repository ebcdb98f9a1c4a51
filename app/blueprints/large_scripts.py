"""How many large scripts are read at the same time. A megabyte of SQL takes the parsers seconds, in which Python lets
nothing else compute, and some of it is read within a transaction: without a bound one team could keep everybody
waiting."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import UUID

from app.auth.principal import Principal
from app.blueprints import placeholders, records
from app.core.limiter import Limiter

LARGE_BYTES = 32 * 1024
"""Anything smaller takes a fraction of a second, and needs no slot."""
_OF_ONE_TEAM, _OF_ALL = 1, 2
"""How many large scripts of one team, and of all teams, one process reads at the same time."""
_LONGEST_NUMBER = 24
"""Characters. A value that is no text is at most a number, or it is refused before anything is read."""


class LargeScripts:
    """Slots for reading large scripts. Each team has one, so that other teams needn't queue behind all that it
    sends."""

    def __init__(self) -> None:
        self._slots = Limiter[int](_OF_ONE_TEAM, total=_OF_ALL)

    @asynccontextmanager
    async def slot(self, team_ids: Sequence[int], size: int) -> AsyncIterator[None]:
        """Holds a slot during the block. Take it before a transaction is begun, so that no transaction stays open while
        it is waited for. `size` is the script's, in bytes; `team_ids` are the caller's, the primary one first."""
        async with AsyncExitStack() as held:
            if size >= LARGE_BYTES:
                # All callers in no team share one slot; they may only validate.
                await held.enter_async_context(self._slots.slot(team_ids[0] if team_ids else 0))
            yield


async def size_to_prepare(principal: Principal, blueprint: UUID, values: Mapping[str, Any] | None) -> int:
    """How many bytes are read when the blueprint is applied: its script, and the values in each of their places. Of a
    large script, its own size alone. 0 for a blueprint without variables, whose SQL was read when it was saved."""
    script = await records.find_script(blueprint, principal.readable_teams, short_bytes=LARGE_BYTES)
    if script is None or not script.variables:
        return 0
    if script.short_sql is None:
        return script.size_bytes
    defaults = {name: definition.get("default") for name, definition in script.variables.items()}
    given = {name: value for name, value in (values or {}).items() if value is not None}
    uses = Counter(placeholders.names_in(script.short_sql))
    # A value that isn't used is looked at all the same.
    return script.size_bytes + sum(max(1, uses[name]) * _length(value) for name, value in (defaults | given).items())


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str) else _LONGEST_NUMBER
