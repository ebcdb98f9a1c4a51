"""Begins the provisionings of a region as soon as they are committed, a few at a time, and starts their workflows."""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from uuid import UUID

import msgspec
import structlog
from structlog.contextvars import bound_contextvars
from temporalio.client import Client

from app.core import context
from app.core.tracing.context import parse_traceparent
from app.core.tracing.spans import SpanKind, Tracer
from app.outbox.provisionings import CHANNEL, claim_pending
from app.outbox.starting import start_all
from app.outbox.workflow_starts import PendingStart, release_to_relay
from app.store.notify import work_on_notices
from workers.queues import WorkerDependencies

_AHEAD_SECONDS = 0.1
"""How long the workflows of first attempts that are still under way are left unstarted."""
_SPAN = "first attempt create_database"

log = structlog.get_logger(__name__)


async def start_provisionings(
    client: Client, tools: WorkerDependencies, region: str, tracer: Tracer | None = None
) -> None:
    """Runs until cancelled. Any number may run concurrently, each in a process that serves the region's queue with
    these tools."""
    dsn = tools.settings.control_dsn
    assert dsn is not None
    async with asyncio.TaskGroup() as starting:
        # What is not started stays in its row.
        await work_on_notices(
            dsn,
            CHANNEL,
            partial(_take_up, client, region, tools, tracer, starting),
            failure="provisionings_waiting",
            payload=region,
            changed=tools.running.changed(region),
            region=region,
        )


async def _take_up(
    client: Client, region: str, tools: WorkerDependencies, tracer: Tracer | None, starting: asyncio.TaskGroup
) -> bool:
    """Begins as many provisionings as there is room for; the end of one calls for more."""
    room = tools.running.room(region)
    pending = await claim_pending(region, room) if room > 0 else []
    for one in pending:
        tools.running.begin(region, one.workflow_id)
        _begin_attempt(tools, one, tracer)
    if pending:
        starting.create_task(_start(client, tools, pending))
    return False


async def _start(client: Client, tools: WorkerDependencies, pending: Sequence[PendingStart]) -> None:
    """Starts the workflows once the attempts are over, or after a moment: what Temporal does meanwhile would slow the
    attempts down. The relay starts what Temporal doesn't take now, as it does when this process dies."""
    await tools.first_attempts.settle([one.workflow_id for one in pending], _AHEAD_SECONDS)
    try:
        for one, fault in await start_all(client, pending):
            log.warning("workflow_start_deferred", workflow_id=one.workflow_id, reason=str(fault))
            await release_to_relay(one, str(fault))
            tools.running.end(one.workflow_id)
    except Exception as fault:
        # Our own database is out of reach; a start that it didn't hear of is made again, for the same workflow.
        log.warning("provisionings_waiting", reason=str(fault) or type(fault).__name__)


class _AttemptSubject(msgspec.Struct, frozen=True):
    """What an attempt needs of the workflow's input."""

    database: UUID
    request_id: str | None = None


def _begin_attempt(tools: WorkerDependencies, one: PendingStart, tracer: Tracer | None) -> None:
    """Begins a first attempt. Its lines in the log have the ids that the workflow's own attempts have."""
    subject = msgspec.json.decode(one.input, type=_AttemptSubject)
    parent = parse_traceparent(one.traceparent)
    traced = None if tracer is None or parent is None else tracer.begin(_SPAN, SpanKind.CONSUMER, parent=parent)
    token = context.request_id.set(subject.request_id or "")
    with bound_contextvars(workflow_id=one.workflow_id, database=str(subject.database)):
        tools.first_attempts.begin(one.workflow_id, subject.database, traced or nullcontext())
    context.request_id.reset(token)
