"""Steps on a tenant engine, done however long it takes, with words for the operator while they wait."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    FailureError,
    TimeoutError,
    TimeoutType,
    is_cancelled_exception,
)

from app.contracts.control import ControlActivities
from app.contracts.databases import DatabaseWorkflowInput
from app.contracts.engine import ENGINE_REFUSED, HOST_UNAVAILABLE, NAME_TAKEN, NOT_WANTED, EngineActivities
from app.contracts.queues import engine_queue
from workflows import policies

Argument = TypeVar("Argument")
Result = TypeVar("Result")


async def run_on_engine(
    request: DatabaseWorkflowInput,
    step: Callable[[Any, Argument], Awaitable[Result]],
    argument: Argument,
    action: str,
    *,
    urgent: bool = True,
    time_limit: timedelta = policies.ENGINE_STEP,
) -> Result:
    """Runs one engine activity until it succeeds. `action` completes the sentence "Waiting to …"; `urgent` tells
    whether somebody waits for the outcome, `time_limit` is for each attempt.

    Raises `ActivityError` when the step is cancelled, or no longer wanted.
    """
    workflow.set_current_details(starting_details(action, request.region))
    round_ = 0
    while True:
        try:
            return await engine_attempts(request, step, argument, action, round_, urgent=urgent, time_limit=time_limit)
        except ActivityError as failure:
            if is_cancelled_exception(failure) or failure_type(failure) == NOT_WANTED:
                raise
            round_ += 1
            workflow.set_current_details(f"Waiting to {action}. The last attempt failed: {reason(failure)}")
            if workflow.info().is_continue_as_new_suggested():
                # From the start: every step finds what was done before.
                workflow.continue_as_new(request)


async def engine_attempts(
    request: DatabaseWorkflowInput,
    step: Callable[[Any, Argument], Awaitable[Result]],
    argument: Argument,
    action: str,
    round_: int,
    *,
    urgent: bool = True,
    time_limit: timedelta = policies.ENGINE_STEP,
) -> Result:
    """One round of attempts. Raises `ActivityError` when all fail."""
    policy = policies.engine(request.region, round_, action, urgent=urgent, time_limit=time_limit)
    return await workflow.execute_activity_method(step, argument, **policy)


def starting_details(action: str, region: str) -> str:
    """Before the first attempt has told anything."""
    queue = engine_queue(region)
    return f"About to {action}. If this stays, the host is slow, or no worker serves the task queue `{queue}`."


async def remove_from_host(request: DatabaseWorkflowInput, *, local: bool = True) -> None:
    """Destroys what lies on the database's host, and records it, as `record` does."""
    action = f"destroy database {request.database} and its login"
    await run_on_engine(request, EngineActivities.destroy_database, request.database, action, urgent=False)
    action = "record that nothing is left of it"
    await record(ControlActivities.record_destroyed, request.database, action, local=local)


async def record(
    step: Callable[[Any, Argument], Awaitable[Result]], argument: Argument, action: str, *, local: bool = True
) -> Result:
    """Runs one activity on our own database until it succeeds. `action` is for people, as for an engine's.

    At first in the worker that runs this workflow, which spares whoever waits two trips through Temporal. What
    doesn't work at once is left to Temporal, where an operator sees it. Not `local` are these steps for workflows
    on another queue than the control queue.
    """
    if local:
        try:
            return await workflow.execute_local_activity_method(step, argument, **policies.local_control(action))
        except FailureError as failure:
            if is_cancelled_exception(failure) or failure_type(failure) == NOT_WANTED:
                raise
            workflow.set_current_details(f"Waiting for Headwater's own database, to {action}: {reason(failure)}")
    return await workflow.execute_activity_method(step, argument, **policies.control(action))


def failure_type(failure: FailureError) -> str | None:
    """The contract's name of what went wrong, if it has one."""
    origin = _origin(failure)
    return origin.type if isinstance(origin, ApplicationError) else None


def blames_host(failure: FailureError) -> bool:
    """Whether the engine host failed: it refused, was out of reach, or took too long. Otherwise it was a worker
    or our own database."""
    origin = _origin(failure)
    if isinstance(origin, TimeoutError):
        return origin.type is TimeoutType.START_TO_CLOSE
    return failure_type(failure) in (ENGINE_REFUSED, HOST_UNAVAILABLE, NAME_TAKEN)


def reason(failure: FailureError) -> str:
    """What went wrong, for people."""
    origin = _origin(failure)
    if isinstance(origin, TimeoutError) and origin.type is TimeoutType.HEARTBEAT:
        return "the worker that was at it stopped answering"
    return origin.message


def _origin(failure: FailureError) -> FailureError:
    """What the activity itself failed with. Around a local one there is no `ActivityError`."""
    if isinstance(failure, ActivityError) and isinstance(failure.cause, FailureError):
        return failure.cause
    return failure
