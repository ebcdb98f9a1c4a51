"""Provisionings that a worker of the region takes up: which, in which order, and how many."""

from uuid import UUID, uuid4

from app.contracts.base import Engine
from app.contracts.databases import Placement, ProvisionDatabaseInput
from app.contracts.queues import provision_workflow_id
from app.outbox.provisionings import RunningProvisionings, claim_pending, request_provisioning
from app.outbox.workflow_starts import INTERACTIVE, UPKEEP, claim_due
from app.store.session import fetch, transaction
from tests.support.pending_starts import make_due, request_pending

REGION = "taken-1"


async def wanted(team: int | None, *, priority: int = INTERACTIVE, region: str = REGION) -> str:
    request = ProvisionDatabaseInput(
        database=uuid4(),
        engine=Engine.POSTGRES,
        region=region,
        team_id=team,
        placement=Placement(host_id=1, address="db-1.example.com:5432", name="tfirst"),
    )
    async with transaction():
        await request_provisioning(request, priority=priority)
    return provision_workflow_id(request.database)


async def taken(limit: int = 100) -> list[str]:
    return [one.workflow_id for one in await claim_pending(REGION, limit)]


async def test_the_teams_have_their_turns_and_the_pool_comes_last(own_store: None) -> None:
    pool = await wanted(None, priority=UPKEEP)
    many = [await wanted(7) for _ in range(4)]
    late = await wanted(8)
    assert set(await taken(2)) == {many[0], late}
    assert set(await taken(3)) == set(many[1:])
    assert await taken() == [pool]
    assert await taken() == []


async def test_nothing_of_other_regions_or_other_workflows_is_taken(own_store: None) -> None:
    await wanted(7, region="elsewhere-1")
    await request_pending()
    assert await taken() == []


async def test_the_relay_has_what_was_taken_by_one_who_died_and_is_tried_by_nobody_else(own_store: None) -> None:
    async with transaction():  # all at one moment
        workflow_id = await wanted(7)
        assert await claim_due() == [], "the region's workers come first"
        assert await taken() == [workflow_id]
        assert await claim_due() == []
    await make_due()
    assert [one.workflow_id for one in await claim_due()] == [workflow_id]
    assert await taken() == []


async def test_a_pending_start_is_left_to_its_region_at_first(own_store: None) -> None:
    rows = await fetch("SELECT next_attempt_at FROM workflow_starts")
    assert rows == []
    async with transaction():
        await wanted(7)
        rows = await fetch("SELECT next_attempt_at > now() + interval '3 seconds' AS later FROM workflow_starts")
    assert [row["later"] for row in rows] == [True]


def test_there_is_room_for_so_many_in_each_region() -> None:
    now = 0.0
    running = RunningProvisionings(limit=2, clock=lambda: now)
    first, second = str(UUID(int=1)), str(UUID(int=2))
    running.begin("a", first)
    running.begin("a", second)
    assert (running.room("a"), running.room("b")) == (0, 2)
    assert not running.changed("a").is_set()
    running.end(first)
    assert running.room("a") == 1
    assert running.changed("a").is_set()
    assert not running.changed("b").is_set()
    running.end("another worker's")
    now = 60.0
    assert running.room("a") == 2, "one that went elsewhere doesn't count for ever"
