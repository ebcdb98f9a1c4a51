"""What surrounds every activity: heartbeats, by which the loss of a worker is noticed within seconds, and metrics of
each attempt by outcome."""

import asyncio
import contextlib
import time
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from app.core.metrics.counters import ACTIVITY_SECONDS


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


def outcome_of(failure: BaseException) -> str:
    """`cancelled`, the failure's type, or `failed` if it has none."""
    if isinstance(failure, asyncio.CancelledError):
        return "cancelled"
    return failure.type or "failed" if isinstance(failure, ApplicationError) else "failed"
