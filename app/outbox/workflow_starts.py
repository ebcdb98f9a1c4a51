"""Pending starts: the workflows of committed changes, so that none is lost.

A change and a row for the workflow (a pending start) are written in one transaction. The process that wrote them starts
the workflow after its commit. If it dies first, or Temporal is unavailable, the relay starts it. Starting twice is
harmless, because the workflow's id is derived from what it works on.
"""

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from app.contracts.base import Contract, WorkflowInput
from app.core.context import current_request_id
from app.core.metrics.counters import WORKFLOW_STARTS
from app.core.tracing.context import causing_traceparent
from app.store.session import execute, fetch_all, fetch_one

INTERACTIVE, NORMAL, UPKEEP = 1, 3, 5
"""Temporal priorities: someone waits for the result, someone requested it, nobody did."""

_NO_MARKUP = "[^[:alnum:] ._-]"
"""Characters that names lose in summaries, as a PostgreSQL expression: the Temporal UI renders summaries as markup,
and a team may choose any name. Temporal takes 400 bytes of each summary."""
_MARKUP = re.compile(r"[^\w .-]")
_MAX_NAME_CHARACTERS = 30
HEAD_START_SECONDS = 2.0
"""How long the relay leaves a new row to the process that wrote it."""
_BACKOFF_LIMIT_SECONDS = 3.0
"""The longest pause between attempts, and so the delay after Temporal is available again."""
SIGNAL_ALONE = "null"
"""The input of a row that is a signal alone."""


class PendingStart(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `workflow_starts`: a workflow that is still to be started."""

    id: int
    workflow: str
    workflow_id: str
    input: str
    """JSON of the workflow's input struct."""
    priority: int
    summary: str
    """A line for Temporal's list of workflows."""
    labels: tuple[str, ...] = ()
    """The labels of the database that it works on."""
    signal: str | None = None
    """A signal that is sent with the start, or to the workflow if it is running already."""
    traceparent: str | None = None
    """The context of the trace that the change belongs to."""


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a committed change: its subject, and the workflow to start after the commit."""

    subject: str
    start: PendingStart | None = None
    settled: bool = False
    """The answer needs nothing more, so it was stored in the transaction of the change."""


def without_markup(name: str) -> str:
    """A name as workflow summaries and results show it: shortened, and without what the Temporal UI would render."""
    return _MARKUP.sub("?", name)[:_MAX_NAME_CHARACTERS]


class _Written(msgspec.Struct, frozen=True):
    id: int
    summary: str
    labels: tuple[str, ...]


async def request_start(
    workflow: Any,
    workflow_id: str,
    request: Contract,
    *,
    priority: int,
    summary: str | None = None,
    purpose: str = "",
    relayed: bool = False,
    head_start: float = HEAD_START_SECONDS,
    signal: str | None = None,
    notice: tuple[str | None, str | None] = (None, None),
) -> PendingStart:
    """Writes a pending start. Call it inside the transaction of the change; after the commit pass the result to
    `start`.

    `workflow` is the interface class. `summary` describes this run in Temporal's list; without it, the summary is
    `purpose` with the current names of the input's database and team. `relayed` leaves the start to the relay;
    otherwise the relay waits `head_start` seconds first. `signal` is sent to the workflow if it is running already; one
    that has ended is not started again. `notice` is a channel, and what is said there with the commit.
    """
    body = _input(request)
    subject = msgspec.json.decode(body, type=StartSubject)
    name = workflow.__temporal_workflow_definition.name
    traceparent = causing_traceparent()
    written = await fetch_one(
        _Written,
        """
        INSERT INTO workflow_starts
            (workflow, workflow_id, input, priority, summary, next_attempt_at, signal, labels, traceparent)
        VALUES ($1, $2, $3::jsonb, $4, coalesce($5, $8 || (
            SELECT d.engine || CASE d.name WHEN '' THEN ' scratch database, '
                   ELSE ' database "' || left(regexp_replace(d.name, $10, '?', 'g'), 30) || '", ' END
                   || coalesce('team "' || left(regexp_replace(t.name, $10, '?', 'g'), 30) || '"', 'no team')
                   || ', ' || d.uuid
            FROM databases d LEFT JOIN teams t ON t.id = d.team_id WHERE d.uuid = $9::uuid
        ), $8 || $11), now() + make_interval(secs => $6), $7,
            coalesce((SELECT d.labels FROM databases d WHERE d.uuid = $9::uuid), '{}'), $12)
        ON CONFLICT (workflow_id) WHERE signal IS NULL DO UPDATE SET workflow_id = excluded.workflow_id
        RETURNING id, summary, labels, CASE WHEN $13::text IS NOT NULL THEN pg_notify($13::text, $14::text)::text END
        """,
        name,
        workflow_id,
        body,
        priority,
        summary,
        0.0 if relayed else head_start,
        signal,
        purpose,
        subject.database,
        _NO_MARKUP,
        _summary(subject),
        traceparent,
        *notice,
    )
    assert written is not None, "an INSERT with DO UPDATE returns its row"
    return PendingStart(
        id=written.id,
        workflow=name,
        workflow_id=workflow_id,
        input=body,
        priority=priority,
        summary=written.summary,
        labels=written.labels,
        signal=signal,
        traceparent=traceparent,
    )


async def request_signal(workflow: str, workflow_id: str, signal: str) -> None:
    """Has the relay send a signal to a workflow that runs; it is dropped where none does. `workflow` is its type. Call
    it inside the transaction of the change. A signal that is still to be sent is not written again."""
    await execute(
        """
        INSERT INTO workflow_starts (workflow, workflow_id, input, priority, summary, next_attempt_at, signal)
        SELECT $1, $2, $5::jsonb, $4, '', now(), $3
        WHERE NOT EXISTS (SELECT FROM workflow_starts WHERE workflow_id = $2 AND signal = $3)
        """,
        workflow,
        workflow_id,
        signal,
        INTERACTIVE,
        SIGNAL_ALONE,
    )


async def claim_due(limit: int = 50) -> list[PendingStart]:
    """Claims rows that are due, for the relay. Each is then left alone for a growing time, so that several relays share
    the work."""
    return await fetch_all(
        PendingStart,
        """
        UPDATE workflow_starts SET attempts = attempts + 1,
               next_attempt_at = now() + make_interval(secs => least(0.5 * 2 ^ least(attempts, 10), $2))
        WHERE id IN (SELECT id FROM workflow_starts WHERE next_attempt_at <= now()
                     ORDER BY priority, id LIMIT $1 FOR UPDATE SKIP LOCKED)
        RETURNING id, workflow, workflow_id, input::text AS input, priority, summary, signal, labels, traceparent
        """,
        limit,
        _BACKOFF_LIMIT_SECONDS,
    )


async def delete_started(ids: Sequence[int]) -> None:
    """Deletes rows whose workflow is started."""
    await execute("DELETE FROM workflow_starts WHERE id = any($1::bigint[])", ids)


async def record_failure(pending: PendingStart, reason: str) -> None:
    """Stores why a start failed, for the operator."""
    WORKFLOW_STARTS.labels(pending.workflow, "failed").inc()
    await execute("UPDATE workflow_starts SET last_error = $2 WHERE id = $1", pending.id, reason[:500])


async def release_to_relay(pending: PendingStart, reason: str) -> None:
    """Stores why a start failed, and makes the row due for the relay: the process that wrote it won't try again."""
    WORKFLOW_STARTS.labels(pending.workflow, "failed").inc()
    await execute(
        "UPDATE workflow_starts SET last_error = $2, next_attempt_at = least(next_attempt_at, now()) WHERE id = $1",
        pending.id,
        reason[:500],
    )


class StartSubject(msgspec.Struct, frozen=True):
    """What an input's JSON says of its subject. Upkeep has no team, a delivery has no engine."""

    database: UUID | None = None
    engine: str | None = None
    region: str | None = None
    team_id: int | None = None
    endpoint: int | None = None
    request_id: str | None = None


def _input(request: Contract) -> str:
    """Encodes the input as JSON, with the id of the request that this task serves."""
    if isinstance(request, WorkflowInput) and request.request_id is None:
        request = msgspec.structs.replace(request, request_id=current_request_id() or None)
    return msgspec.json.encode(request).decode()


def _summary(subject: StartSubject) -> str:
    owner = "no team" if subject.team_id is None else f"team {subject.team_id}"
    return f"{subject.engine} database {subject.database} in {subject.region}, {owner}"
