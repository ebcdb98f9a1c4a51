"""Holding a workflow at one of its activities, in workers of this process."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import temporalio.client
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from app.contracts.engine import HOST_UNAVAILABLE
from app.provisioning.first_attempts import FirstAttempts


class NoneAhead(FirstAttempts):
    """No attempt begins before its workflow's step, which a gate may hold."""

    def begin(self, *_: object) -> None:
        pass


@dataclass
class Gate:
    """Holds the first workflow of that type that reaches that activity."""

    workflow: str
    step: str
    workflow_id: str = ""
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    dropped: bool = False
    """The held activity is never run."""
    away: bool = False
    """Nothing is held: the activity fails, as often as it is tried, as when its host is away."""


@dataclass
class Run:
    """What one run of a workflow has reached."""

    workflow: str
    workflow_id: str
    steps: list[str] = field(default_factory=list)
    """In order."""


class Gates(temporalio.client.Interceptor, Interceptor):
    """An interceptor of the client, which its workers inherit."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        """By their ids, in the order of their first steps."""
        self._closed: list[Gate] = []
        """The newest first."""
        self._open = False

    def has_reached(self, workflow_id: str, step: str) -> bool:
        return any(run.workflow_id == workflow_id and step in run.steps for run in self.runs.values())

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Held(next, self)

    @contextmanager
    def standing_open(self) -> Iterator[None]:
        """Nothing that comes in the block is held."""
        self._open = True
        try:
            yield
        finally:
            self._open = False

    @asynccontextmanager
    async def holding(self, workflow: str, step: str, *, away: bool = False) -> AsyncIterator[Gate]:
        """Opened at the end of the block, if not before. With `away` the step fails until then."""
        gate = Gate(workflow, step, away=away)
        self._closed.insert(0, gate)
        try:
            yield gate
        finally:
            self._closed.remove(gate)
            gate.opened.set()

    async def pass_through(self, info: activity.Info) -> None:
        workflow_id = info.workflow_id or ""
        run = self.runs.setdefault(info.workflow_run_id or "", Run(info.workflow_type or "", workflow_id))
        if info.activity_type not in run.steps:
            run.steps.append(info.activity_type)
        for gate in () if self._open else self._closed:
            if (gate.workflow, gate.step) == (info.workflow_type, info.activity_type) and not gate.opened.is_set():
                if gate.workflow_id not in ("", workflow_id):
                    continue
                gate.workflow_id = workflow_id
                gate.reached.set()
                if gate.away:
                    raise ApplicationError("the host is away", type=HOST_UNAVAILABLE)
                await gate.opened.wait()
                if gate.dropped:
                    raise RuntimeError("the worker died with this step")
                return


class _Held(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, gates: Gates) -> None:
        super().__init__(next)
        self._gates = gates

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        await self._gates.pass_through(activity.info())
        return await self.next.execute_activity(input)
