"""The metrics of one worker process, if the settings name a port for them."""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any

import structlog
from prometheus_client import Metric
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.runtime import Runtime

from app.contracts.queues import CONTROL_QUEUE
from app.core.metrics.page import MetricsPage, Source
from app.core.metrics.temporal_sdk import TemporalMetrics
from app.core.settings import Settings
from app.upkeep.inventory.gauges import installation_gauges

_KINDS = {
    "activity": TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
    "workflow": TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
}
_BACKLOG_SECONDS = 2.0
log = structlog.get_logger(__name__)


class WorkerMetrics:
    """The process's counters, the SDK's metrics, and the backlog of its queues; on the control queue also the gauges
    of the installation."""

    def __init__(self, settings: Settings, queues: Sequence[str]) -> None:
        self._host, self._port = settings.metrics_host, settings.metrics_port
        self._queues = queues
        self._sdk = TemporalMetrics() if self._port else None

    @property
    def runtime(self) -> Runtime | None:
        """The runtime for the client of this process."""
        return self._sdk.runtime if self._sdk else None

    async def serve(self, client: Client, stack: AsyncExitStack) -> list[Coroutine[Any, Any, None]]:
        """Starts to serve until the stack is closed; the returned coroutines have to run meanwhile."""
        if self._sdk is None or self._port is None:
            return []
        sources: list[Source] = [self._sdk.collect, lambda: backlogs(client, self._queues)]
        sources += [installation_gauges] if CONTROL_QUEUE in self._queues else []
        await stack.enter_async_context(MetricsPage(*sources).served(self._host, self._port))
        return [self._sdk.drain()]


async def backlogs(client: Client, queues: Sequence[str]) -> Sequence[Metric]:
    """The backlog of each queue. Empty when Temporal can't be asked."""
    tasks = Metric("headwater_task_queue_backlog", "Tasks that wait for a worker, roughly.", "gauge")
    age = Metric("headwater_task_queue_backlog_age_seconds", "How long the oldest of them has waited.", "gauge")
    asked = [(queue, kind) for queue in queues for kind in _KINDS]
    try:
        async with asyncio.timeout(_BACKLOG_SECONDS):
            answers = await asyncio.gather(*(_stats(client, queue, kind) for queue, kind in asked))
    except Exception as fault:
        log.warning("backlogs_unknown", reason=str(fault) or type(fault).__name__)
        return []
    for (queue, kind), (count, seconds) in zip(asked, answers, strict=True):
        labels = {"queue": queue, "kind": kind}
        tasks.add_sample(tasks.name, labels, count)
        age.add_sample(age.name, labels, seconds)
    return [tasks, age]


async def _stats(client: Client, queue: str, kind: str) -> tuple[int, float]:
    description = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=_KINDS[kind],
            report_stats=True,
        )
    )
    stats = description.stats
    return stats.approximate_backlog_count, stats.approximate_backlog_age.ToNanoseconds() / 1e9
