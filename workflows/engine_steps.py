"""Steps on a tenant engine that are retried until they succeed, with a description for the operator meanwhile."""

import asyncio
import contextlib
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
from app.contracts.engine import (
    DESTRUCTION_LIMIT,
    ENGINE_REFUSED,
    HOST_UNAVAILABLE,
    NAME_TAKEN,
    NOT_WANTED,
    EngineActivities,
)
from app.contracts.queues import engine_queue
from app.contracts.restores import NON_RETRYABLE
from app.contracts.retries import RETRY_NOW, pause_after
from workflows import policies

_WAITS = "waits-between-rounds"
"""Runs that began without this marker leave the waiting to Temporal, with more attempts in each round."""

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
    """Runs one engine activity until it succeeds, and waits between the rounds of attempts. `request` is what another
    run goes on with when the history gets long. `action` completes the sentence "Waiting to …". `urgent` says whether
    somebody waits for the result; `time_limit` applies to each attempt.

    Raises `ActivityError` when the step is cancelled or no longer wanted.
    """
    workflow.set_current_details(starting_details(action, request.region))
    round_, waited = 0, True
    while True:
        try:
            many = 0 if waited else round_
            return await engine_attempts(request, step, argument, action, many, urgent=urgent, time_limit=time_limit)
        except ActivityError as failure:
            if is_cancelled_exception(failure) or failure_type(failure) == NOT_WANTED:
                raise
            round_ += 1
            workflow.set_current_details(f"Waiting to {action}. The last attempt failed: {reason(failure)}")
            if workflow.info().is_continue_as_new_suggested():
                # Every step finds what was done before.
                workflow.continue_as_new(request)
            waited = await pause(round_)


async def run_transfer(
    request: DatabaseWorkflowInput,
    step: Callable[[Any, Argument], Awaitable[Result]],
    argument: Argument,
    action: str,
) -> Result:
    """The same for an activity that moves the data of a database. Raises `ActivityError` also for a failure that no
    further attempt would change."""
    rounds = 0
    while True:
        workflow.set_current_details(f"About to {action}.")
        try:
            policy = policies.transfer(request.region, action)
            return await workflow.execute_activity_method(step, argument, **policy)
        except ActivityError as failure:
            if is_cancelled_exception(failure) or failure_type(failure) in (NOT_WANTED, *NON_RETRYABLE):
                raise
            rounds += 1
            workflow.set_current_details(f"Waiting to {action}. The last attempt failed: {reason(failure)}")
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(request)
            await pause(rounds)


async def pause(rounds: int) -> bool:
    """Waits as `rounds` failed rounds call for, or until the signal `RETRY_NOW`; a signal that came during the attempts
    counts. False where this run leaves the waiting to Temporal."""
    if not workflow.patched(_WAITS):
        return False
    woken = asyncio.Event()
    # Only now: until somebody listens, Temporal keeps a signal.
    workflow.set_signal_handler(RETRY_NOW, woken.set)
    with contextlib.suppress(asyncio.TimeoutError):
        await workflow.wait_condition(
            woken.is_set, timeout=pause_after(rounds), timeout_summary="Until the next attempts"
        )
    workflow.set_signal_handler(RETRY_NOW, None)
    return True


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
    """Runs one round of attempts. Raises `ActivityError` when all of them fail."""
    policy = policies.engine(request.region, round_, action, urgent=urgent, time_limit=time_limit)
    return await workflow.execute_activity_method(step, argument, **policy)


def starting_details(action: str, region: str) -> str:
    """The description before the first attempt has reported anything."""
    queue = engine_queue(region)
    return f"About to {action}. If this stays, the host is slow, or no worker serves the task queue `{queue}`."


async def remove_from_host(request: DatabaseWorkflowInput, *, local: bool = True) -> None:
    """Destroys everything on the database's host, and records it with `record`."""
    action = f"destroy database {request.database} and its login"
    step = EngineActivities.destroy_database
    await run_on_engine(request, step, request.database, action, urgent=False, time_limit=DESTRUCTION_LIMIT)
    action = "record that nothing is left of it"
    await record(ControlActivities.record_destroyed, request.database, action, local=local)


async def record(
    step: Callable[[Any, Argument], Awaitable[Result]], argument: Argument, action: str, *, local: bool = True
) -> Result:
    """Runs one activity on our own database until it succeeds. `action` is a text for people, as in `run_on_engine`.

    The first attempt is a local activity, in the worker that runs this workflow, which saves two trips through
    Temporal. If it fails, Temporal retries it as a normal activity, which operators can see. Workflows on another queue
    than the control queue pass `local=False`.
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
    """The contract's type of the failure, if it has one."""
    origin = _origin(failure)
    return origin.type if isinstance(origin, ApplicationError) else None


def blames_host(failure: FailureError) -> bool:
    """Whether the engine host failed: it refused, was unreachable, or took too long. Otherwise a worker or our own
    database failed."""
    origin = _origin(failure)
    if isinstance(origin, TimeoutError):
        return origin.type is TimeoutType.START_TO_CLOSE
    return failure_type(failure) in (ENGINE_REFUSED, HOST_UNAVAILABLE, NAME_TAKEN)


def reason(failure: FailureError) -> str:
    """The reason, for display."""
    origin = _origin(failure)
    if isinstance(origin, TimeoutError) and origin.type is TimeoutType.HEARTBEAT:
        return "the worker that was at it stopped answering"
    return origin.message


def _origin(failure: FailureError) -> FailureError:
    """The failure of the activity itself. A local activity's failure has no `ActivityError` around it."""
    if isinstance(failure, ActivityError) and isinstance(failure.cause, FailureError):
        return failure.cause
    return failure
