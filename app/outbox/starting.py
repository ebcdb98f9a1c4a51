"""Starting the workflows of pending starts, at once or in the background."""

import asyncio
import contextlib
import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import structlog
from temporalio.client import Client
from temporalio.common import (
    Priority,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from app.contracts.queues import (
    DATABASE_ATTRIBUTE,
    ENGINE_ATTRIBUTE,
    LABELS_ATTRIBUTE,
    REGION_ATTRIBUTE,
    REQUEST_ATTRIBUTE,
    TEAM_ATTRIBUTE,
    workflow_queue,
)
from app.core.metrics.counters import WORKFLOW_STARTS
from app.core.tracing.context import originating
from app.outbox.workflow_starts import SIGNAL_ALONE, PendingStart, StartSubject, delete_started, release_to_relay

UPKEEP_FAIRNESS = "upkeep"
"""The fairness key of work that no team requested."""
_RPC_TIMEOUT = timedelta(seconds=3)
_MAX_CONCURRENT_STARTS = 16
_KEYWORD_CHARACTERS = 255
"""The most characters of one keyword, as Temporal's stores on MySQL index them."""
_KEYWORDS_BYTES = 2048
"""The most bytes of all that a search attribute holds, as the client's JSON in ASCII: Temporal's
`limit.searchAttributesSizeOfValue` unless set otherwise."""
TASK_TIMEOUT = timedelta(seconds=2)
"""The delay that a worker's death in a workflow task costs; Temporal's default is 10 s."""

log = structlog.get_logger(__name__)


async def start(client: Client, pending: PendingStart) -> None:
    """Starts the workflow and deletes the row. Safe to repeat. Raises what Temporal's client raises when it can't be
    reached."""
    await _start(client, pending)
    await delete_started([pending.id])


async def start_all(client: Client, pending: Sequence[PendingStart]) -> list[tuple[PendingStart, Exception]]:
    """Starts the workflows concurrently, deletes the rows of those started, and returns the others with their errors.
    When this process also runs a worker for the workflow's queue, the first task runs here directly."""
    slots = asyncio.Semaphore(_MAX_CONCURRENT_STARTS)

    async def attempt(one: PendingStart) -> Exception | None:
        async with slots:
            try:
                await _start(client, one, eager=True)
            except (RPCError, RuntimeError, OSError) as fault:
                return fault
        return None

    faults = await asyncio.gather(*map(attempt, pending))
    started = [one.id for one, fault in zip(pending, faults, strict=True) if fault is None]
    await delete_started(started)
    return [(one, fault) for one, fault in zip(pending, faults, strict=True) if fault is not None]


async def _start(client: Client, pending: PendingStart, *, eager: bool = False) -> None:
    if pending.input == SIGNAL_ALONE and pending.signal is not None:
        await _signal(client, pending.workflow_id, pending.signal)
        return
    request = msgspec.json.decode(pending.input, type=StartSubject)
    # An earlier start may have succeeded without its answer, and the workflow may have ended.
    with contextlib.suppress(WorkflowAlreadyStartedError), originating(pending.traceparent):
        await client.start_workflow(
            pending.workflow,
            msgspec.Raw(pending.input.encode()),
            id=pending.workflow_id,
            task_queue=workflow_queue(pending.workflow, request.region),
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            search_attributes=_search_attributes(request, pending.labels),
            static_summary=pending.summary,
            priority=Priority(priority_key=pending.priority, fairness_key=_fairness_key(request)),
            task_timeout=TASK_TIMEOUT,
            rpc_timeout=_RPC_TIMEOUT,
            start_signal=pending.signal,
            request_eager_start=eager and pending.signal is None,
        )
    WORKFLOW_STARTS.labels(pending.workflow, "started").inc()


async def _signal(client: Client, workflow_id: str, signal: str) -> None:
    try:
        await client.get_workflow_handle(workflow_id).signal(signal, rpc_timeout=_RPC_TIMEOUT)
    except RPCError as fault:
        if fault.status is not RPCStatusCode.NOT_FOUND:
            raise


class Starter:
    """Starts workflows that a request has committed, without making the request wait. The relay starts those that
    fail."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._running: set[asyncio.Task[None]] = set()

    def start_soon(self, pending: PendingStart) -> None:
        task = asyncio.create_task(self._start(pending))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """Waits for the starts in progress; each has the time limit of one call."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _start(self, pending: PendingStart) -> None:
        try:
            await start(self._client, pending)
        except Exception as fault:
            # Temporal or our own database is unavailable. The row stays, and the relay starts the workflow.
            reason = str(fault) or type(fault).__name__
            log.warning("workflow_start_deferred", workflow_id=pending.workflow_id, reason=reason)
            with contextlib.suppress(Exception):
                await release_to_relay(pending, reason)


def _fairness_key(subject: StartSubject) -> str:
    """Keeps one team's thousand requests from delaying another's single one; the same for receivers' retries."""
    if subject.endpoint is not None:
        return f"endpoint-{subject.endpoint}"
    return UPKEEP_FAIRNESS if subject.team_id is None else f"team-{subject.team_id}"


def _search_attributes(subject: StartSubject, labels: Sequence[str]) -> TypedSearchAttributes:
    pairs: list[SearchAttributePair[Any]] = []
    if subject.database is not None:
        pairs.append(SearchAttributePair(DATABASE_ATTRIBUTE, str(subject.database)))
    if subject.team_id is not None:
        pairs.append(SearchAttributePair(TEAM_ATTRIBUTE, subject.team_id))
    if subject.engine is not None:
        pairs.append(SearchAttributePair(ENGINE_ATTRIBUTE, subject.engine))
    if subject.region is not None:
        pairs.append(SearchAttributePair(REGION_ATTRIBUTE, subject.region))
    if subject.request_id is not None:
        pairs.append(SearchAttributePair(REQUEST_ATTRIBUTE, subject.request_id))
    if searchable := _searchable(labels):
        pairs.append(SearchAttributePair(LABELS_ATTRIBUTE, searchable))
    return TypedSearchAttributes(pairs)


def _searchable(labels: Sequence[str]) -> list[str]:
    """As many labels as Temporal takes: it refuses a workflow with longer ones."""
    chosen: list[str] = []
    for label in labels:
        if len(label) > _KEYWORD_CHARACTERS:
            continue
        if len(json.dumps([*chosen, label])) > _KEYWORDS_BYTES:
            break
        chosen.append(label)
    return chosen
