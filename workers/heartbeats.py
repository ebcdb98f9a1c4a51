"""Sends heartbeats for every activity, so that the loss of a worker is noticed within seconds."""

import asyncio
import contextlib
from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor


class Heartbeats(Interceptor):
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Beating(next)


class _Beating(ActivityInboundInterceptor):
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
