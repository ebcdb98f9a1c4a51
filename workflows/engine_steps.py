"""Steps on a tenant engine, done however long it takes, with words for the operator while they wait."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutError, TimeoutType, is_cancelled_exception

from app.contracts.control import ControlActivities
from app.contracts.databases import DatabaseWorkflowInput
from app.contracts.engine import ENGINE_REFUSED, HOST_UNAVAILABLE, NAME_TAKEN, NOT_WANTED, EngineActivities
from app.contracts.queues import engine_queue
from workflows import policies

Argument = TypeVar("Argument")
Result = TypeVar("Result")


async def on_engine(
    request: DatabaseWorkflowInput, step: Callable[[Any, Argument], Awaitable[Result]], argument: Argument, doing: str
) -> Result:
    """Runs one engine activity until it succeeds. `doing` completes the sentence "Waiting to …".

    Raises `ActivityError` when the step is cancelled, or no longer wanted.
    """
    round_ = 0
    while True:
        try:
            return await engine_attempts(request, step, argument, doing, round_)
        except ActivityError as failure:
            if is_cancelled_exception(failure) or failure_type(failure) == NOT_WANTED:
                raise
            round_ += 1
            workflow.set_current_details(f"Waiting to {doing}. The last attempt failed: {reason(failure)}")


async def engine_attempts(
    request: DatabaseWorkflowInput,
    step: Callable[[Any, Argument], Awaitable[Result]],
    argument: Argument,
    doing: str,
    round_: int,
) -> Result:
    """One round of attempts. Raises `ActivityError` when all fail."""
    if round_ == 0:
        queue = engine_queue(request.region)
        workflow.set_current_details(f"About to {doing}. If this stays, no worker serves the task queue `{queue}`.")
    return await workflow.execute_activity_method(step, argument, **policies.engine(request.region, round_, doing))


async def remove_from_host(request: DatabaseWorkflowInput) -> None:
    """Destroys what lies on the database's host, and records it."""
    doing = f"destroy database {request.database} and its login"
    await on_engine(request, EngineActivities.destroy_database, request.database, doing)
    await record(ControlActivities.record_destroyed, request.database)


async def record(step: Callable[[Any, Argument], Awaitable[None]], argument: Argument) -> None:
    """Runs one activity on our own database until it succeeds.

    At first in the worker that runs this workflow, which spares whoever waits two trips through Temporal. What
    doesn't work at once is left to Temporal, where an operator sees it.
    """
    try:
        await workflow.execute_local_activity_method(step, argument, **policies.at_once())
    except ActivityError as failure:
        if is_cancelled_exception(failure) or failure_type(failure) == NOT_WANTED:
            raise
        await workflow.execute_activity_method(step, argument, **policies.control())


def failure_type(failure: ActivityError) -> str | None:
    """The contract's name of what went wrong, if it has one."""
    return failure.cause.type if isinstance(failure.cause, ApplicationError) else None


def blames_host(failure: ActivityError) -> bool:
    """Whether the engine host failed: it refused, was out of reach, or took too long. Otherwise it was a worker
    or our own database."""
    if isinstance(failure.cause, TimeoutError):
        return failure.cause.type is TimeoutType.START_TO_CLOSE
    return failure_type(failure) in (ENGINE_REFUSED, HOST_UNAVAILABLE, NAME_TAKEN)


def reason(failure: ActivityError) -> str:
    """What went wrong, for people."""
    if isinstance(failure.cause, TimeoutError) and failure.cause.type is TimeoutType.HEARTBEAT:
        return "the worker that was at it stopped answering"
    return str(failure.cause or failure)
