"""One worker process: the Temporal workers of its queues, and their dependencies."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import structlog
from temporalio.client import Client
from temporalio.runtime import Runtime
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from app.backups.storage.store import BackupStore
from app.contracts.queues import CONTROL_QUEUE, WEBHOOK_QUEUE, engine_region, with_transfer_queues
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.core.temporal import connect_from_settings
from app.core.tracing.spans import Tracer
from app.hosts.adapters import Adapters
from app.quotas.file import load_plans
from app.store.migrate import follow_migrations
from app.store.session import connected
from app.webhooks.attempts import Attempts
from app.webhooks.egress.sender import Sender
from workers.audit import serve_audit, serve_audit_heads
from workers.backups import remove_ended_backups, serve_backups
from workers.connections import watch_connections
from workers.deliveries import Deliveries
from workers.event_dispatcher import dispatch_events
from workers.expiries import serve_credential_ends, serve_expiries
from workers.interceptors import ActivityMetrics, Heartbeats, OperationSteps
from workers.log_ids import LogIds
from workers.metrics import WorkerMetrics
from workers.pool import refill_claimed
from workers.provisionings import start_provisionings
from workers.queues import WorkerDependencies, queue_config
from workers.relay import relay
from workers.schedules import maintain_schedules
from workers.search_attributes import register_search_attributes
from workers.stray_objects import serve_stray_objects
from workers.tracing import TracedWork

_PASSED_THROUGH = ("msgspec", "app.contracts")
"""Modules that the sandbox doesn't load anew for each run. They hold no state, and a struct of a reloaded module
would not be the one that the converter knows."""

_GRACEFUL_SHUTDOWN = timedelta(seconds=5)
_STICKY_TIMEOUT = timedelta(seconds=1)
"""How long a workflow's next task waits for the worker that last ran it: the delay that a killed worker costs."""
_HEARTBEAT_INTERVAL = timedelta(seconds=1)
_CONNECT_RETRY_SECONDS = 0.5
_SPARE_CONNECTIONS = 8
"""Connections for the relay and the other background tasks."""

log = structlog.get_logger(__name__)


async def run(settings: Settings, queues: Sequence[str], stop: asyncio.Event, tracer: Tracer | None = None) -> None:
    """Serves the queues until `stop` is set. `tracer` is that of the process, if it traces. Raises
    `InvalidSettings` for the file of plans."""
    plans = load_plans(settings.plans_file)
    box = SecretBox.from_setting(settings.secret_keys)
    if not settings.control_dsn:
        raise ValueError("HEADWATER_CONTROL_DSN is not set")
    backup_store = BackupStore.from_settings(settings, box)
    queues = with_transfer_queues(queues)
    metrics = WorkerMetrics(settings, queues)
    async with AsyncExitStack() as stack:
        if tracer is not None:
            await stack.enter_async_context(tracer.destination.running())
        await stack.enter_async_context(connected(settings.control_dsn, max_size=max_connections(queues)))
        await follow_migrations()
        client = await _connected_client(settings, metrics.runtime, tracer)
        await register_search_attributes(client)
        tools = WorkerDependencies(
            settings=settings,
            plans=plans,
            box=box,
            adapters=Adapters(box),
            backup_store=backup_store,
        )
        stack.push_async_callback(tools.adapters.close)
        for queue in queues:
            await stack.enter_async_context(build_worker(client, queue, tools, tracer))
        background = await metrics.serve(client, stack)
        if CONTROL_QUEUE in queues:
            background += [relay(client), maintain_schedules(client, settings), refill_claimed(tools)]
            background += [serve_credential_ends(), serve_expiries(plans, settings)]
            background += [serve_backups(tools.backup_terms), serve_audit(plans, settings)]
        if WEBHOOK_QUEUE in queues:
            sender = Sender(settings)
            stack.push_async_callback(sender.close)
            deliveries = Deliveries(Attempts(box, sender, settings, tracer), settings)
            background += [dispatch_events(settings, deliveries.changed), deliveries.serve()]
        for queue in queues:
            region = engine_region(queue)
            if region is not None:
                background.append(start_provisionings(client, tools, region, tracer))
                background.append(watch_connections(plans, tools.adapters, settings, region))
                background.append(remove_ended_backups(backup_store, region))
                background.append(serve_stray_objects(backup_store, settings.orphan_age))
                background.append(serve_audit_heads(backup_store, plans, settings))
        # Whatever the level is: whoever has started the worker waits for this line.
        level = max(logging.INFO, logging.getLogger(__name__).getEffectiveLevel())
        log.log(level, "worker_ready", queues=list(queues))
        await _until(stop, [asyncio.create_task(task) for task in background])


def build_worker(client: Client, queue: str, tools: WorkerDependencies, tracer: Tracer | None = None) -> Worker:
    """The worker of one queue, as `workers.queues` configures it."""
    traced = [] if tracer is None else [TracedWork(tracer)]
    config = queue_config(queue)
    activities = [
        method for implementation in config.implementations for method in activity_methods(implementation(tools))
    ]
    return Worker(
        client,
        task_queue=queue,
        workflows=config.workflows,
        activities=activities,
        workflow_runner=sandbox() if config.sandboxed else UnsandboxedWorkflowRunner(),
        interceptors=[*traced, LogIds(), Heartbeats(), ActivityMetrics(), OperationSteps()],
        max_concurrent_activities=config.max_activities,
        max_concurrent_workflow_tasks=config.max_workflow_tasks,
        # The default is four fifths of the heartbeat timeout: one late heartbeat, and a second attempt would start.
        max_heartbeat_throttle_interval=_HEARTBEAT_INTERVAL,
        sticky_queue_schedule_to_start_timeout=_STICKY_TIMEOUT,
        graceful_shutdown_timeout=_GRACEFUL_SHUTDOWN,
        build_id="headwater",
    )


def max_connections(queues: Sequence[str]) -> int:
    """The size of the pool for our own database, so that no activity waits for a connection that another holds."""
    return _SPARE_CONNECTIONS + sum(queue_config(queue).max_connections for queue in queues)


def sandbox() -> SandboxedWorkflowRunner:
    """The runner that keeps workflow code deterministic."""
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*_PASSED_THROUGH))


def activity_methods(implementation: object) -> list[Callable[..., Any]]:
    """The activities among an object's methods."""
    methods = (getattr(implementation, name) for name in dir(implementation) if not name.startswith("_"))
    return [method for method in methods if hasattr(method, "__temporal_activity_definition")]


async def _connected_client(settings: Settings, runtime: Runtime | None, tracer: Tracer | None) -> Client:
    while True:
        try:
            return await connect_from_settings(settings, runtime=runtime, tracer=tracer)
        except (RuntimeError, RPCError) as fault:
            log.warning("waiting_for_temporal", address=settings.temporal_address, reason=str(fault))
            await asyncio.sleep(_CONNECT_RETRY_SECONDS)


async def _until(stop: asyncio.Event, background: list[asyncio.Task[None]]) -> None:
    """Waits for the signal, or for the end of a background task, which must not end."""
    stopped = asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait({stopped, *background}, return_when=asyncio.FIRST_COMPLETED)
    for task in (stopped, *background):
        task.cancel()
    await asyncio.gather(stopped, *background, return_exceptions=True)
    for task in done:
        task.result()
