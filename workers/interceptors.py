"""What surrounds every activity: heartbeats, by which the loss of a worker is noticed within seconds, metrics of each
attempt by outcome, and the progress that its operation reports."""

import asyncio
import contextlib
import time
from collections.abc import Coroutine
from typing import Any

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from app.contracts.backups import (
    BACKUP_STORE_REFUSED,
    BACKUP_STORE_UNAVAILABLE,
    FINAL_BACKUP_FAILED,
    FINAL_BACKUP_PENDING,
)
from app.contracts.engine import (
    ENGINE_REFUSED,
    HOST_FULL,
    HOST_REMOVED,
    HOST_UNAVAILABLE,
    NAME_TAKEN,
    NOT_WANTED,
    STORE_UNAVAILABLE,
)
from app.contracts.restores import BACKUP_UNREADABLE, DATA_NOT_BACK, SLOTS_TAKEN, SOURCE_AWAY
from app.contracts.retries import ATTEMPTS_AT_ONCE
from app.core.clock import utc_now
from app.core.metrics.counters import ACTIVITY_SECONDS
from app.operations.attempt import Attempt, current
from app.operations.kinds import TRACKED_ACTIVITIES
from app.operations.progress import note_attempt, note_failure
from app.operations.reasons import ReasonCode

_DELAY_SECONDS = 0.25
_REPORT_SECONDS = 2.0
_REASONS = {
    HOST_UNAVAILABLE: ReasonCode.HOST_UNAVAILABLE,
    HOST_REMOVED: ReasonCode.HOST_UNAVAILABLE,
    HOST_FULL: ReasonCode.HOST_FULL,
    ENGINE_REFUSED: ReasonCode.ENGINE_REFUSED,
    NAME_TAKEN: ReasonCode.NAME_TAKEN,
    STORE_UNAVAILABLE: ReasonCode.STORE_UNAVAILABLE,
    FINAL_BACKUP_PENDING: ReasonCode.FINAL_BACKUP_PENDING,
    FINAL_BACKUP_FAILED: ReasonCode.FINAL_BACKUP_FAILED,
    BACKUP_UNREADABLE: ReasonCode.BACKUP_IDENTITY_NEEDED,
    SOURCE_AWAY: ReasonCode.SOURCE_UNAVAILABLE,
    SLOTS_TAKEN: ReasonCode.QUEUED,
    DATA_NOT_BACK: ReasonCode.DATA_NOT_BACK,
    BACKUP_STORE_UNAVAILABLE: ReasonCode.BACKUP_STORE_UNAVAILABLE,
    BACKUP_STORE_REFUSED: ReasonCode.BACKUP_STORE_REFUSED,
}
"""The reasons by the type of the failure. Its message is not reported: it may quote anything."""

log = structlog.get_logger(__name__)


class Heartbeats(Interceptor):
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _HeartbeatActivity(next)


class _HeartbeatActivity(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        timeout = activity.info().heartbeat_timeout
        if timeout is None:
            return await super().execute_activity(input)
        beat = asyncio.create_task(_beat(timeout.total_seconds() / 3))
        try:
            return await super().execute_activity(input)
        finally:
            beat.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await beat


async def _beat(interval: float) -> None:
    # A short activity ends before its first heartbeat, which would be one more call for Temporal to store.
    while True:
        await asyncio.sleep(interval)
        activity.heartbeat()


class ActivityMetrics(Interceptor):
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _CountedActivity(next)


class _CountedActivity(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        began = time.perf_counter()
        outcome = "ok"
        try:
            return await super().execute_activity(input)
        except BaseException as failure:
            outcome = outcome_of(failure)
            raise
        finally:
            name = activity.info().activity_type
            ACTIVITY_SECONDS.labels(name, outcome).observe(time.perf_counter() - began)


class OperationSteps(Interceptor):
    """Reports to the operation that a step is under way, or why it is tried again."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _StepActivity(next)


class _StepActivity(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        if info.activity_type not in TRACKED_ACTIVITIES or info.workflow_id is None:
            return await super().execute_activity(input)
        attempt = Attempt(workflow_id=info.workflow_id, activity=info.activity_type, began=utc_now())
        token = current.set(attempt)
        reporting = asyncio.create_task(_report_later(attempt))
        try:
            return await super().execute_activity(input)
        except ApplicationError as failure:
            await _end(reporting)
            if failure.type != NOT_WANTED and (failure.type == SLOTS_TAKEN or _is_last(info)):
                await _report(note_failure(attempt, _REASONS.get(failure.type or "", ReasonCode.STEP_FAILED)))
            raise
        except asyncio.CancelledError:
            details = activity.cancellation_details()
            if details is not None and details.timed_out:
                await asyncio.shield(_report(note_failure(attempt, ReasonCode.HOST_TOO_SLOW)))
            raise
        finally:
            current.reset(token)
            await _end(reporting)


async def _report_later(attempt: Attempt) -> None:
    """Reports the attempt after a moment. A step that ends sooner is reported by its end alone."""
    await asyncio.sleep(_DELAY_SECONDS)
    await _report(note_attempt(attempt))


async def _report(writing: Coroutine[Any, Any, None]) -> None:
    """Writes a report. One that can't be written doesn't fail the step."""
    try:
        async with asyncio.timeout(_REPORT_SECONDS):
            await writing
    except Exception as fault:
        log.info("operation_not_reported", reason=str(fault) or type(fault).__name__)


async def _end(reporting: asyncio.Task[None]) -> None:
    reporting.cancel()
    await asyncio.gather(reporting, return_exceptions=True)


def _is_last(info: activity.Info) -> bool:
    """Whether the workflow waits next: attempts that follow each other at once are one."""
    if info.is_local:
        return False
    policy = info.retry_policy
    return (
        policy is None
        or not policy.maximum_attempts
        or info.attempt % ATTEMPTS_AT_ONCE == 0
        or (info.attempt >= policy.maximum_attempts)
    )


def outcome_of(failure: BaseException) -> str:
    """`cancelled`, the failure's type, or `failed` if it has none."""
    if isinstance(failure, asyncio.CancelledError):
        return "cancelled"
    return failure.type or "failed" if isinstance(failure, ApplicationError) else "failed"
