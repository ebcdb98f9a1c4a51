"""The attempt at a step that the current task makes."""

from contextvars import ContextVar
from datetime import datetime

import msgspec


class Attempt(msgspec.Struct, kw_only=True):
    """One call of an activity, from its begin to its end."""

    workflow_id: str
    activity: str
    began: datetime
    counted: bool = False
    """Whether the operation's row counts it."""


current: ContextVar[Attempt | None] = ContextVar("operation_attempt", default=None)
"""The current task's attempt; None outside an activity."""
