"""The rules that hold of a stack at rest, whatever happened to it before: broken ones, in words."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable

from app.contracts.base import Engine
from tests.e2e.hosts import objects, objects_of, reader_of
from tests.operations.agreement import ROWS, disagreements
from tests.support.stack import LiveStack
from tests.support.waiting import LIMIT_SECONDS

_ROWS = """
SELECT d.uuid::text, d.team_id IS NULL AS pooled, d.engine, d.engine_name, d.status, h.port,
       d.remote_since IS NOT NULL AS remote,
       d.provisioned_at IS NOT NULL AS provisioned, d.destroyed_at IS NOT NULL AS destroyed,
       d.password_sealed IS NOT NULL AS has_password,
       EXISTS (SELECT FROM query_readers r WHERE r.database_id = d.id) AS has_reader,
       ARRAY(SELECT e.type FROM events e WHERE e.database_id = d.id AND e.type <> 'database.credentials_rotated'
               AND NOT starts_with(e.type, 'backup.')
               AND e.type NOT IN ('database.paused', 'database.restored', 'database.resumed', 'database.expiring')
             ORDER BY e.id) AS events
FROM databases d JOIN engine_hosts h ON h.id = d.host_id
"""


async def settled(stack: LiveStack, timeout: float = LIMIT_SECONDS) -> float:
    """Waits until no rule is broken any more, and returns how long that took, in seconds."""
    started = time.monotonic()
    while True:
        try:
            broken = await audit(stack)
        except Exception as fault:  # what was killed is not back yet
            broken = [f"can't look: {type(fault).__name__}: {fault}"]
        if not broken:
            return time.monotonic() - started
        assert time.monotonic() < started + timeout, "\n".join(broken[:40])
        await asyncio.sleep(0.1)


async def audit(stack: LiveStack) -> list[str]:
    """One sentence for each rule that doesn't hold right now."""
    rows = await stack.control(_ROWS)
    return [
        *[f"{row['uuid']}: {fault}" for row in rows for fault in _row_faults(row)],
        *disagreements(await stack.control(ROWS)),
        *await _pending_starts(stack),
        *await _workflows(stack),
        *await _hosts(stack, rows),
    ]


def _row_faults(row: dict[str, object]) -> Iterable[str]:
    deleted = row["status"] == "deleted"
    if row["status"] not in ("active", "deleted"):
        yield f"is still {row['status']}"
    if deleted and not row["destroyed"]:
        yield "is not destroyed"
    if deleted == row["has_password"] and row["destroyed"]:
        yield "is destroyed, and its password kept"
    if _without_undeletions(row["events"]) not in _stories(row, deleted=deleted):
        yield f"has the events {row['events']}"


def _without_undeletions(events: object) -> list[str]:
    """What is left when each undeletion takes away the deletion before it."""
    told: list[str] = []
    assert isinstance(events, list)
    for event in events:
        if event == "database.undeleted" and told[-1:] == ["database.deleted"]:
            told.pop()
        else:
            told.append(event)
    return told


def _stories(row: dict[str, object], *, deleted: bool) -> list[list[str]]:
    """What may have been told of it: nothing while it is the pool's, and of one that was claimed not its beginning."""
    if row["pooled"]:
        return [[]]
    # Of a create that never became active, its deletion says all.
    gone = deleted and row["destroyed"] and row["provisioned"]
    end = ["database.provisioned"] * bool(row["provisioned"]) + ["database.deleted"] * deleted
    end += ["database.destroyed"] * bool(gone)
    return [["database.provisioning_started", *end], *([end] if row["provisioned"] else [])]


async def _pending_starts(stack: LiveStack) -> list[str]:
    waiting = await stack.control("SELECT workflow_id FROM workflow_starts")
    keyless = await stack.control(
        "SELECT uuid FROM databases d WHERE team_id IS NOT NULL AND NOT EXISTS"
        " (SELECT FROM idempotency_keys k WHERE k.resource = d.uuid::text)"
    )
    unanswered = await stack.control("SELECT key FROM idempotency_keys WHERE response_sealed IS NULL")
    return [
        *[f"{row['workflow_id']} is not started" for row in waiting],
        *[f"{row['uuid']} was asked for by nobody" for row in keyless],
        *[f"the key {row['key']} has no answer" for row in unanswered],
    ]


async def _workflows(stack: LiveStack) -> list[str]:
    client = await stack.temporal()
    query = "ExecutionStatus = 'Running' OR ExecutionStatus = 'Failed' OR ExecutionStatus = 'Terminated'"
    return [f"{one.id} is {one.status.name if one.status else '?'}" async for one in client.list_workflows(query)]


async def _hosts(stack: LiveStack, rows: list[dict[str, object]]) -> list[str]:
    faults = []
    for host in stack.file.hosts:
        ours = [row for row in rows if row["engine"] == host.engine and row["port"] == host.port]
        active = [row["engine_name"] for row in ours if row["status"] == "active"]
        expected = Counter(entry for name in active for entry in objects_of(host.engine, str(name)))
        found = Counter(await objects(host))
        # Made a moment after its row, or not at all when the question's process died.
        readers = [str(row["engine_name"]) for row in ours if row["status"] == "active" and row["has_reader"]]
        possible = expected + Counter(entry for name in readers for entry in reader_of(host.engine, name))
        faults += [f"{Engine(host.engine).value} has an orphan: {entry}" for entry in found - possible]
        faults += [f"{Engine(host.engine).value} lacks: {entry}" for entry in expected - found]
    return faults
