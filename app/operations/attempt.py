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
    """Whether the operation's row has it."""


current: ContextVar[Attempt | None] = ContextVar("operation_attempt", default=None)
"""None outside an activity."""
