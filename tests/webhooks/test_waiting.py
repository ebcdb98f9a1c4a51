"""What can't be sent now waits without a workflow, and arrives once when its receiver answers again."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from app.local.temporal import TemporalService
from app.store.session import fetch
from app.webhooks.circuit import BREAKS_AT
from tests.servers import RunningServer
from tests.support.client import Caller
from tests.support.receiver import Receiver, answer, hang
from tests.support.store import copy_of
from tests.support.waiting import LIMIT_SECONDS, until
from tests.support.webhooks import WEBHOOKS, Delivering, delivering, emit, path, subscribed

TEAMS, ENDPOINTS, EVENTS = 2, 3, 10
ALL = TEAMS * ENDPOINTS * EVENTS


@pytest_asyncio.fixture(scope="module")
async def patient(
    tmp_path_factory: pytest.TempPathFactory,
    control_server: RunningServer,
    migrated_dsn: str,
    temporal_server: TemporalService,
    target: Receiver,
) -> AsyncIterator[Delivering]:
    """Workers that probe often, and go on for as long as a test may take."""
    dsn = await copy_of(migrated_dsn, control_server.admin_dsn)
    settings = {
        "WEBHOOK_RETRY_SCHEDULE": ",".join(["0", *["0.5"] * 200]),
        "WEBHOOK_TIMEOUT_SECONDS": "1",
        "WEBHOOK_PROBE_SECONDS": "0.5",
        "WEBHOOK_LONGEST_PROBE_SECONDS": "1",
        "WEBHOOK_PROBES_PER_SECOND": "100",
    }
    async with delivering(tmp_path_factory.mktemp("patient"), dsn, temporal_server, target, **settings) as made:
        yield made


@asynccontextmanager
async def unhurried(patient: Delivering) -> AsyncIterator[None]:
    """For the block a worker in place of the killed one that gives no attempt up: what has arrived would come again."""
    await patient.start(WEBHOOKS, WEBHOOK_TIMEOUT_SECONDS=str(LIMIT_SECONDS))
    try:
        yield
    finally:
        await patient.kill(WEBHOOKS)
        await patient.start(WEBHOOKS)


@dataclass
class Hanging:
    """Teams whose endpoints all hang, on these paths."""

    callers: list[Caller] = field(default_factory=list)
    endpoints: list[int] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    async def count(self, what: str) -> int:
        """Of its deliveries."""
        return await counted(f"webhook_deliveries WHERE endpoint_id = any($1::bigint[]) AND {what}", self.endpoints)

    async def attempts(self) -> int:
        return await counted(
            "webhook_attempts a JOIN webhook_deliveries d ON d.id = a.delivery_id"
            " WHERE d.endpoint_id = any($1::bigint[])",
            self.endpoints,
        )

    async def count_endpoints(self, what: str) -> int:
        return await counted(f"webhook_endpoints WHERE id = any($1::bigint[]) AND {what}", self.endpoints)

    async def delivered(self) -> bool:
        return await self.count("status = 'delivered'") == ALL

    async def nothing_is_due(self) -> bool:
        return await self.count_endpoints("(next_attempt_at IS NOT NULL OR claimed_by IS NOT NULL)") == 0


async def counted(rows: str, endpoints: list[int]) -> int:
    (row,) = await fetch(f"SELECT count(*) FROM {rows}", endpoints)
    return int(row["count"])


@pytest_asyncio.fixture
async def hanging(patient: Delivering, target: Receiver) -> AsyncIterator[Hanging]:
    """Once all circuits are broken and everything waits."""
    made = Hanging()
    for _ in range(TEAMS):
        caller = await patient.api.caller()
        made.callers.append(caller)
        for _ in range(ENDPOINTS):
            made.paths.append(path())
            target.replies[made.paths[-1]] = hang
            endpoint, _ = await subscribed(caller, target.url(made.paths[-1]))
            made.endpoints.append(endpoint)
    for caller in made.callers:
        for number in range(EVENTS):
            await emit(caller, number)

    async def all_wait() -> bool:
        waiting = await made.count("waiting AND status = 'pending'")
        return (waiting, await made.count_endpoints(f"slow_failures >= {BREAKS_AT}")) == (ALL, len(made.endpoints))

    await until(all_wait)
    yield made
    # Nothing of it goes on beside the next test.
    await fetch("UPDATE webhook_endpoints SET revoked_at = now() WHERE id = any($1::bigint[])", made.endpoints)


async def test_deliveries_have_no_workflow(patient: Delivering, hanging: Hanging, target: Receiver) -> None:
    """Neither those that wait nor those that arrive."""
    client, caller, where = await patient.temporal(), await patient.api.caller(), path()
    target.replies[where] = answer(200)
    await subscribed(caller, target.url(where))
    probes = await hanging.attempts()
    for one in [*hanging.callers, caller]:
        await emit(one)

    async def arrived_and_probed() -> bool:
        return bool(target.of(where)) and await hanging.attempts() >= probes + 2 * len(hanging.paths)

    await until(arrived_and_probed)
    assert await hanging.count("waiting") == ALL + len(hanging.paths)
    assert await fetch("SELECT 1 FROM workflow_starts") == []
    assert [one.id async for one in client.list_workflows("WorkflowType = 'DeliverWebhook'")] == []


async def test_all_arrive_once_when_the_receivers_are_back(
    patient: Delivering, hanging: Hanging, target: Receiver
) -> None:
    """The worker is killed while everything waits."""
    await patient.kill(WEBHOOKS)
    asked = {where: len(target.of(where)) for where in hanging.paths}
    for where in hanging.paths:
        target.replies[where] = answer(200)
    async with unhurried(patient):
        await until(hanging.delivered)
        for where in hanging.paths:
            arrived = Counter(got.headers["webhook-id"] for got in target.of(where)[asked[where] :])
            assert len(arrived) == EVENTS
            assert set(arrived.values()) == {1}
        await until(hanging.nothing_is_due)


async def test_none_is_lost_while_workers_are_killed(patient: Delivering, hanging: Hanging, target: Receiver) -> None:
    """In the middle of letting them go: what was under way may come twice, nothing else does."""
    for where in hanging.paths:
        target.replies[where] = answer(200)
    before = len(target.received)
    for least in (5, 20):

        async def begun(least: int = least) -> bool:
            return len(target.received) >= before + least

        await until(begun)
        await patient.kill(WEBHOOKS)
        await patient.start(WEBHOOKS)
    # What a killed worker had claimed waits for the end of the claim.
    await until(hanging.delivered)
    for where in hanging.paths:
        assert len({got.headers["webhook-id"] for got in target.of(where)}) == EVENTS
    await until(hanging.nothing_is_due)


async def test_a_revocation_ends_what_waits(hanging: Hanging) -> None:
    await hanging.callers[0].delete(f"/webhook_endpoints/{hanging.endpoints[0]}")
    (ended,) = await fetch(
        "SELECT count(*) FILTER (WHERE status = 'failed') AS failed, count(*) FILTER (WHERE waiting) AS waiting"
        " FROM webhook_deliveries WHERE endpoint_id = $1",
        hanging.endpoints[0],
    )
    assert dict(ended) == {"failed": EVENTS, "waiting": 0}
    assert await hanging.count("waiting") == ALL - EVENTS


async def test_an_overloaded_endpoint_takes_its_turns(patient: Delivering, target: Receiver) -> None:
    """Far more at once than may be under way, to a receiver that is merely slow: oldest first, and none fails."""
    caller, where = await patient.api.caller(), path()
    target.replies[where] = answer(200)
    endpoint, _ = await subscribed(caller, target.url(where))
    await fetch("UPDATE webhook_endpoints SET slow_failures = 1 WHERE id = $1", endpoint)

    async def all_of_them() -> bool:
        return len(target.of(where)) >= 100

    await patient.kill(WEBHOOKS)
    async with unhurried(patient):
        for number in range(100):
            await emit(caller, number)
        await until(all_of_them)
        assert len({got.headers["webhook-id"] for got in target.of(where)}) == len(target.of(where)) == 100
