"""One way that a workflow goes: what is asked, what the activities answer, and what must follow."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio.client import WorkflowExecutionStatus

from app.contracts.base import Contract
from tests.workflows.fakes import Script

COMPLETED = WorkflowExecutionStatus.COMPLETED
LONG_TASK = timedelta(minutes=1)
"""On a crowded machine a workflow task may take longer than ours, and would be begun anew with the steps in it."""
SHORT_TASK = timedelta(seconds=5)
"""Where something is to end a step within a task: Temporal tells of it when four fifths of the limit are over."""


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
    task_timeout: timedelta = LONG_TASK

    @property
    def arguments(self) -> list[Contract]:
        return [] if self.request is None else [self.request]
