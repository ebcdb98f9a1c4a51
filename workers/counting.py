"""Counts and times every attempt of an activity, by outcome."""

import asyncio
import time
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from app.core.metrics.counters import ACTIVITY_SECONDS


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
