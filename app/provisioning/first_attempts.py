"""The first attempt at a new database begins as soon as its provisioning is claimed: while the workflow is
being started, which takes it over. Decision 16."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractContextManager
from contextvars import copy_context
from typing import Any
from uuid import UUID

from app.core.clock import utc_now
from app.operations import attempt
from app.operations.attempt import Attempt

_ACTIVITY = "create_database"
"""The step of the workflow that a first attempt stands for."""
_SECONDS = 60.0
"""The time limit of an attempt that no workflow takes over: that of an engine's step."""
_KEPT_SECONDS = 3.0
"""How long an attempt that has ended is kept to be taken over."""

Create = Callable[[UUID], Coroutine[Any, Any, None]]


class FirstAttempts:
    """The first attempts of one process, by the ids of their workflows.

    An attempt needs no workflow to be safe: it is made under the database's lock, and records first that something may
    lie on the host. Where the process dies, or another one runs the workflow, the workflow's own attempt finds what is
    there already, as after an attempt whose answer was lost.
    """

    def __init__(self) -> None:
        self._create: Create | None = None
        self._begun: dict[str, FirstAttempt] = {}

    def create_with(self, create: Create) -> None:
        """Sets what an attempt calls: `create` creates a database, and may be called again."""
        self._create = create

    def begin(self, workflow_id: str, database: UUID, span: AbstractContextManager[object]) -> None:
        """Begins an attempt in a copy of this task's context, within `span`."""
        if self._create is not None:
            self._begun[workflow_id] = FirstAttempt(
                Attempt(workflow_id=workflow_id, activity=_ACTIVITY, began=utc_now()),
                _limited(self._create(database), span),
                forget=lambda: self._begun.pop(workflow_id, None),
            )

    async def settle(self, workflow_ids: Iterable[str], seconds: float) -> None:
        """Waits until the attempts of these workflows have ended, for `seconds` at most."""
        under_way = [self._begun[one].task for one in workflow_ids if one in self._begun]
        if under_way:
            await asyncio.wait(under_way, timeout=seconds)

    def take(self, workflow_id: str) -> "FirstAttempt | None":
        """The attempt that was begun, for the workflow's first step. It is given out once."""
        return self._begun.pop(workflow_id, None)


class FirstAttempt:
    """An attempt that is under way, or has just ended."""

    def __init__(self, mine: Attempt, work: Coroutine[Any, Any, None], *, forget: Callable[[], object]) -> None:
        """`mine` is what the operation gets to know of it; `forget` is called a moment after the end."""
        self._mine = mine
        self._context = copy_context()
        self._context.run(attempt.current.set, mine)
        self._forget = forget
        self.task = asyncio.create_task(work, context=self._context)
        self.task.add_done_callback(self._ended)

    async def finish(self) -> None:
        """Waits for its end, and raises what it raised. From now on it is the caller's attempt, for the operation too,
        and is cancelled with the caller."""
        callers = attempt.current.get()
        if callers is not None:
            # So that it counts once, whoever reports it.
            callers.began = self._mine.began
            self._context.run(attempt.current.set, callers)
        await self.task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            # Raised to whoever takes it over. Otherwise the workflow's own attempt fails in the same way.
            task.exception()
        asyncio.get_running_loop().call_later(_KEPT_SECONDS, self._forget)


async def _limited(work: Coroutine[Any, Any, None], span: AbstractContextManager[object]) -> None:
    with span:
        async with asyncio.timeout(_SECONDS):
            await work
