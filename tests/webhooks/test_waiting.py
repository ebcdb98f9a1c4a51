"""What can't be sent now costs Temporal nothing, and arrives once when its receiver answers again."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from temporalio.client import Client

from app.local.temporal import TemporalService
from app.store.session import fetch
from app.webhooks.circuit import BREAKS_AT
from tests.servers import RunningServer
from tests.support.client import Caller
from tests.support.receiver import Receiver, answer, hang
from tests.support.store import database_name, new_database
from tests.support.waiting import until
from tests.support.webhooks import WEBHOOKS, Delivering, delivering, emit, path, subscribed

TEAMS, ENDPOINTS, EVENTS = 2, 4, 15


@pytest_asyncio.fixture
async def patient(
    tmp_path: Path, control_server: RunningServer, migrated_dsn: str, own_temporal: TemporalService, target: Receiver
) -> AsyncIterator[Delivering]:
    """Workers that probe often, and go on for as long as a test may take."""
    dsn = await new_database(control_server.admin_dsn, template=database_name(migrated_dsn))
    settings = {
        "WEBHOOK_RETRY_SCHEDULE": ",".join(["0", *["0.5"] * 200]),
        "WEBHOOK_TIMEOUT_SECONDS": "1",
        "WEBHOOK_PROBE_SECONDS": "0.5",
        "WEBHOOK_LONGEST_PROBE_SECONDS": "1",
        "WEBHOOK_PROBES_PER_SECOND": "100",
    }
    async with delivering(tmp_path, dsn, own_temporal, target, **settings) as made:
        yield made


async def hanging(running: Delivering, target: Receiver) -> tuple[list[Caller], list[str]]:
    """Teams whose endpoints all hang, and what they hang on, once all circuits are broken and everything waits."""
    callers, paths = [], []
    for _ in range(TEAMS):
        caller = await running.api.caller()
        callers.append(caller)
        for _ in range(ENDPOINTS):
            paths.append(path())
            target.replies[paths[-1]] = hang
            await subscribed(caller, target.url(paths[-1]))
    for caller in callers:
        for number in range(EVENTS):
            await emit(caller, number)

    async def all_wait() -> bool:
        waiting = await fetch("SELECT count(*) FROM webhook_deliveries WHERE waiting AND status = 'pending'")
        broken = await fetch("SELECT count(*) FROM webhook_endpoints WHERE slow_failures >= $1", BREAKS_AT)
        return (waiting[0]["count"], broken[0]["count"]) == (len(paths) * EVENTS, len(paths))

    await until(all_wait, timeout=120)
    return callers, paths


async def costs(client: Client) -> tuple[int, int, int]:
    """Deliveries' workflows, how many of them are open, and the events of all their histories."""
    found = [one async for one in client.list_workflows("WorkflowType = 'DeliverWebhook'")]
    return len(found), sum(one.close_time is None for one in found), sum(one.history_length for one in found)


async def settled(client: Client) -> tuple[int, int, int]:
    """The costs, once Temporal's list is up to date."""

    async def same() -> tuple[int, int, int] | None:
        seen = await costs(client)
        return seen if seen[1] == 0 else None

    seen = await until(same)
    assert seen is not None
    return seen


async def attempts() -> int:
    rows = await fetch("SELECT count(*) FROM webhook_attempts")
    return int(rows[0]["count"])


async def test_what_waits_has_no_workflow(patient: Delivering, target: Receiver) -> None:
    client = await patient.temporal()
    others = await costs(client)
    callers, paths = await hanging(patient, target)
    before = await settled(client)
    assert before[0] - others[0] <= len(paths) * EVENTS
    probes = await attempts()

    async def probed() -> bool:
        return await attempts() >= probes + 2 * len(paths)

    await until(probed)
    # What comes now waits as well, and nothing begins for it.
    for caller in callers:
        await emit(caller)

    async def dispatched() -> bool:
        return not await fetch("SELECT 1 FROM events WHERE dispatched_at IS NULL")

    await until(dispatched)
    assert await fetch("SELECT 1 FROM workflow_starts") == []
    assert await settled(client) == before
    rows = await fetch("SELECT count(*) FROM webhook_deliveries WHERE waiting")
    assert rows[0]["count"] == len(paths) * (EVENTS + 1)


async def test_all_arrive_once_when_the_receivers_are_back(patient: Delivering, target: Receiver) -> None:
    """The worker is killed while everything waits."""
    _, paths = await hanging(patient, target)
    await patient.kill(WEBHOOKS)
    asked = {where: len(target.of(where)) for where in paths}
    for where in paths:
        target.replies[where] = answer(200)
    await patient.start(WEBHOOKS)

    async def delivered() -> bool:
        rows = await fetch("SELECT count(*) FROM webhook_deliveries WHERE status = 'delivered'")
        return bool(rows[0]["count"] == len(paths) * EVENTS)

    await until(delivered)
    for where in paths:
        arrived = Counter(got.headers["webhook-id"] for got in target.of(where)[asked[where] :])
        assert len(arrived) == EVENTS
        assert set(arrived.values()) == {1}
    (row,) = await fetch("SELECT count(*) FROM webhook_endpoints WHERE next_attempt_at IS NOT NULL")
    await until(nothing_is_due)
    assert row["count"] <= len(paths)


async def nothing_is_due() -> bool:
    return not await fetch(
        "SELECT 1 FROM webhook_endpoints WHERE next_attempt_at IS NOT NULL OR claimed_by IS NOT NULL"
    )


async def test_none_is_lost_while_workers_are_killed(patient: Delivering, target: Receiver) -> None:
    """In the middle of letting them go: what was under way may come twice, nothing else does."""
    _, paths = await hanging(patient, target)
    for where in paths:
        target.replies[where] = answer(200)
    before = len(target.received)
    for least in (5, 40):

        async def begun(least: int = least) -> bool:
            return len(target.received) >= before + least

        await until(begun)
        await patient.kill(WEBHOOKS)
        await patient.start(WEBHOOKS)

    async def delivered() -> bool:
        rows = await fetch("SELECT count(*) FROM webhook_deliveries WHERE status = 'delivered'")
        return bool(rows[0]["count"] == len(paths) * EVENTS)

    await until(delivered, timeout=90)
    for where in paths:
        assert len({got.headers["webhook-id"] for got in target.of(where)}) == EVENTS
    await until(nothing_is_due)


async def test_a_revocation_ends_what_waits(patient: Delivering, target: Receiver) -> None:
    callers, paths = await hanging(patient, target)
    rows = await fetch("SELECT id, url FROM webhook_endpoints WHERE team_id = $1 ORDER BY id", callers[0].team_id)
    await callers[0].delete(f"/webhook_endpoints/{rows[0]['id']}")
    (ended,) = await fetch(
        "SELECT count(*) FILTER (WHERE status = 'failed') AS failed, count(*) FILTER (WHERE waiting) AS waiting"
        " FROM webhook_deliveries WHERE endpoint_id = $1",
        rows[0]["id"],
    )
    assert dict(ended) == {"failed": EVENTS, "waiting": 0}
    (other,) = await fetch("SELECT count(*) FROM webhook_deliveries WHERE waiting")
    assert other["count"] == (len(paths) - 1) * EVENTS


async def test_an_overloaded_endpoint_takes_its_turns(patient: Delivering, target: Receiver) -> None:
    """Far more at once than may be under way, to a receiver that is merely slow: oldest first, and none fails."""
    caller, where = await patient.api.caller(), path()
    target.replies[where] = answer(200)
    endpoint, _ = await subscribed(caller, target.url(where))
    await fetch("UPDATE webhook_endpoints SET slow_failures = 1 WHERE id = $1", endpoint)
    for number in range(100):
        await emit(caller, number)

    async def all_of_them() -> bool:
        return len(target.of(where)) >= 100

    await until(all_of_them)
    assert len({got.headers["webhook-id"] for got in target.of(where)}) == len(target.of(where)) == 100
