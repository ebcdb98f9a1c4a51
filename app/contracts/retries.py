"""How the workflows that work on hosts wait for them, and what ends their waiting. And the limits of steps that tests
set: the sandbox loads this module once, but `workflows.policies` for each run."""

from datetime import timedelta

RETRY_NOW = "retry_now"
"""The signal to a workflow that waits before its next attempt: make it now. One that doesn't wait makes its next
attempt without waiting."""
CANCEL = "cancel"
"""The signal to `ApplyBlueprint`: run no more statements, and record how far the script came."""

ATTEMPTS_AT_ONCE = 3
"""Attempts of a step that come right after each other, before the workflow waits."""
HEARTBEAT = timedelta(seconds=3)
"""How long a step's worker may say nothing before another one makes the next attempt."""
LOCAL_STEP = timedelta(seconds=1.5)
"""The time limit of a step within a workflow task; less than the task's own."""
_FIRST_SECONDS = 1.0
_LONGEST_SECONDS = 30.0


def pause_after(rounds: int) -> timedelta:
    """How long the workflow waits after so many rounds of attempts that failed: from one second, doubling, up to half
    a minute."""
    return timedelta(seconds=min(_FIRST_SECONDS * 2 ** min(rounds - 1, 10), _LONGEST_SECONDS))
