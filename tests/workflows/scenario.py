"""One way that a workflow goes: what is asked, what the activities answer, and what must follow."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from temporalio.client import WorkflowExecutionStatus

from app.contracts.base import Contract
from tests.workflows.fakes import Script

COMPLETED = WorkflowExecutionStatus.COMPLETED


@dataclass(frozen=True)
class Scenario:
    """`script` makes a fresh one. `cancel` cancels the workflow once an activity of its hangs."""

    workflow: Any
    request: Contract | None
    script: Callable[[], Script]
    calls: list[str]
    ends: WorkflowExecutionStatus = COMPLETED
    details: str = ""
    """Part of what the workflow says of itself at its end."""
    cancel: bool = False
    signal: str | None = None
    """The signal that is sent once an activity hangs."""

    @property
    def arguments(self) -> list[Contract]:
        return [] if self.request is None else [self.request]
