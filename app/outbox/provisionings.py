"""Provisionings are started by a worker of their region. A notification announces new ones; it claims as many as it
has room for, and runs each in the call that starts the workflow. The relay starts what is left."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from app.contracts.databases import ProvisionDatabase, ProvisionDatabaseInput
from app.contracts.queues import provision_workflow_id
from app.outbox.workflow_starts import HEAD_START_SECONDS, PendingStart, request_start
from app.store.session import fetch_all

CHANNEL = "headwater_provisionings"
"""Notifications of committed pending starts; the payload is the region."""

_QUEUED_SECONDS = 5.0
"""How long the relay leaves a pending start to the workers of the region: claimed by them, it costs Temporal half."""
_STARTED_SECONDS = 3.0
"""How long a started provisioning counts against the limit if its end isn't seen, because another worker ran it or its
host doesn't answer."""


async def request_provisioning(request: ProvisionDatabaseInput, *, priority: int, summary: str | None = None) -> None:
    """Writes the pending start, in the transaction that writes the database's row."""
    await request_start(
        ProvisionDatabase,
        provision_workflow_id(request.database),
        request,
        priority=priority,
        summary=summary,
        head_start=_QUEUED_SECONDS,
        notice=(CHANNEL, request.region),
    )


async def claim_pending(region: str, limit: int) -> list[PendingStart]:
    """Claims pending starts that nobody has tried yet: by priority, and in turn by team. If the claimer dies, the relay
    starts them after its usual delay."""
    return await fetch_all(PendingStart, _TAKE_UP, region, limit, HEAD_START_SECONDS)


class RunningProvisionings:
    """The provisionings that one worker has claimed, by region, at most `limit` in each. Provisionings that wait in our
    own database cost nothing; those that wait inside a workflow task cost Temporal a call a second."""

    def __init__(self, limit: int = 10, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = limit
        self._clock = clock
        self._taken: dict[str, _Taken] = {}
        self._changed: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def changed(self, region: str) -> asyncio.Event:
        """Set when there may be something to claim, or room again."""
        return self._changed[region]

    def room(self, region: str) -> int:
        now = self._clock()
        self._taken = {key: taken for key, taken in self._taken.items() if taken.until > now}
        return self._most - sum(taken.region == region for taken in self._taken.values())

    def begin(self, region: str, workflow_id: str) -> None:
        self._taken[workflow_id] = _Taken(region, self._clock() + _STARTED_SECONDS)

    def end(self, workflow_id: str) -> None:
        taken = self._taken.pop(workflow_id, None)
        if taken is not None:
            self._changed[taken.region].set()


class _Taken(NamedTuple):
    region: str
    until: float


# No wait for the disk: a claim that our database's server loses is made again, and its workflow has the same id.
_TAKE_UP = """
UPDATE workflow_starts SET attempts = attempts + 1, next_attempt_at = now() + make_interval(secs => $3)
WHERE id IN (
    SELECT s.id FROM workflow_starts s JOIN (
        SELECT id, row_number() OVER (PARTITION BY priority, input ->> 'team_id' ORDER BY id) AS turn
        FROM workflow_starts
        WHERE workflow = 'ProvisionDatabase' AND attempts = 0 AND input ->> 'region' = $1
    ) queue USING (id)
    WHERE s.attempts = 0
    ORDER BY s.priority, queue.turn, s.id LIMIT $2 FOR UPDATE OF s SKIP LOCKED
)
RETURNING id, workflow, workflow_id, input::text AS input, priority, summary, labels, traceparent,
          set_config('synchronous_commit', 'off', true)
"""
