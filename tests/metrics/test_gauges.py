"""What the installation holds and owes, as the metrics tell it."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest_asyncio

from app.audit.sealing import seal_events
from app.store.session import fetch
from tests.support.client import Caller
from tests.support.in_process import LoneApi, lone_api
from tests.support.metrics import scrape
from tests.support.moves import make_active

US, EU = "us-east-1", "eu-west-1"


@pytest_asyncio.fixture
async def lone(control_dsn: str) -> AsyncIterator[LoneApi]:
    """With its page of metrics on its own port."""
    async with lone_api(control_dsn, metrics_port=8000) as api:
        await api.add_host()
        yield api


async def _created(caller: Caller, **fields: Any) -> str:
    answer = await caller.create(**fields)
    assert answer.status_code == 202
    return str(answer.json()["data"]["uuid"])


async def test_databases_by_what_they_are(lone: LoneApi) -> None:
    caller = await lone.caller()
    active, _, destroyed = [await _created(caller) for _ in range(3)]
    await make_active(active)
    await fetch("UPDATE databases SET status = 'deleted', destroyed_at = now() WHERE uuid = $1", UUID(destroyed))
    page = await scrape(lone.http)
    assert page.value("headwater_databases", status="active", engine="postgres", region=US) == 1
    assert page.value("headwater_databases", status="provisioning") == 1
    assert page.value("headwater_databases", status="deleted") == 0


async def test_paused_and_frozen_ones(lone: LoneApi) -> None:
    caller = await lone.caller()
    changes = (
        "status = 'paused', paused_reason = 'runtime'",
        "status = 'paused', frozen_at = now()",
        "status = 'active', frozen_at = now()",
        "status = 'deleted', frozen_at = now()",
    )
    for change in changes:
        uuid = await _created(caller)
        await fetch(f"UPDATE databases SET {change} WHERE uuid = $1", UUID(uuid))
    page = await scrape(lone.http)
    assert page.value("headwater_databases_paused", engine="postgres", region=US, reason="runtime") == 1
    assert page.value("headwater_databases_paused", reason="resuming") == 1
    assert page.value("headwater_databases_frozen", engine="postgres", region=US) == 2


async def test_the_load_of_each_host(lone: LoneApi) -> None:
    await lone.add_host(
        host="full", port=1, region=EU, capacity=2, connection_capacity=30, connection_overcommit=4, draining=True
    )
    caller = await lone.caller()
    await fetch("UPDATE engine_hosts SET draining = NOT draining, sick_until = now() + interval '1 hour'")
    for _ in range(2):
        await _created(caller, region=EU, connection_hard_limit=7)
    page = await scrape(lone.http)
    host = {"host": "full:1", "region": EU, "engine": "postgres"}
    assert page.value("headwater_host_databases", **host) == 2
    assert page.value("headwater_host_connections_promised", **host) == 14
    assert page.value("headwater_host_capacity_databases", **host) == 2
    assert page.value("headwater_host_capacity_connections", **host) == 120
    assert page.value("headwater_host_connections_limit", **host) == 30
    assert page.value("headwater_host_sick", **host) == 1
    assert page.value("headwater_host_draining", **host) == 0
    assert page.value("headwater_host_draining", region=US) == 1
    assert page.value("headwater_host_databases", region=US) == 0


async def test_the_age_of_what_waits(lone: LoneApi) -> None:
    assert (await scrape(lone.http)).value("headwater_workflow_starts_oldest_age_seconds") == 0
    caller = await lone.caller()
    for _ in range(2):
        await _created(caller)
    await fetch("UPDATE workflow_starts SET created_at = now() - interval '90 s' WHERE id % 2 = 0")
    page = await scrape(lone.http)
    assert page.value("headwater_workflow_starts_pending") == 2
    assert 90 <= page.value("headwater_workflow_starts_oldest_age_seconds") < 600


async def test_the_depth_of_the_pools(lone: LoneApi) -> None:
    await fetch("INSERT INTO pool_targets (region, engine, size) VALUES ($1, 'postgres', 7)", US)
    caller = await lone.caller()
    assert (await scrape(lone.http)).labels("headwater_pool_ready", "region") == {US}
    made = [await _created(caller) for _ in range(2)]
    for uuid in made:
        await make_active(uuid)
    await fetch("UPDATE databases SET team_id = NULL WHERE uuid = $1", UUID(made[0]))
    page = await scrape(lone.http)
    assert page.value("headwater_pool_ready", engine="postgres", region=US) == 1
    assert page.value("headwater_pool_size", engine="postgres", region=US) == 7
    assert page.value("headwater_databases", status="active") == 1
    await fetch("UPDATE engine_hosts SET draining = true")
    assert (await scrape(lone.http)).value("headwater_pool_ready") == 0


async def test_the_age_of_the_oldest_proof(lone: LoneApi) -> None:
    """Also of a backup that is gone: the last test may have been longer ago than backups are kept."""
    name, day = "headwater_backup_proof_oldest_age_seconds", 86_400
    uuid = await _created(await lone.caller())
    await make_active(uuid)
    await fetch(
        "INSERT INTO backup_policies (database_id, backup_at) SELECT id, now() + interval '1 hour' FROM databases"
        " WHERE uuid = $1",
        UUID(uuid),
    )
    await fetch(
        "INSERT INTO backups (uuid, team_id, database_id, database_uuid, database_name, engine, region, plan, quotas,"
        " kind, status, priority, completed_at, proven_at)"
        " SELECT gen_random_uuid(), team_id, id, uuid, name, engine, region, plan, '{}', 'scheduled', b.status, 5,"
        " now() - b.age, now() - b.proof_age"
        " FROM databases, (VALUES ('expired', interval '21 days', interval '20 days'), ('completed', '1 hour', NULL))"
        " b (status, age, proof_age) WHERE databases.uuid = $1 ORDER BY b.age DESC",
        UUID(uuid),
    )
    proven = (await scrape(lone.http)).value(name, engine="postgres", region=US)
    assert 20 * day <= proven < 21 * day
    await fetch("UPDATE backups SET proven_at = NULL")
    assert 21 * day <= (await scrape(lone.http)).value(name) < 22 * day
    await fetch("UPDATE backup_policies SET test_every_days = 31")
    assert (await scrape(lone.http)).labels(name, "region") == set()


async def test_findings_by_rule(lone: LoneApi) -> None:
    assert (await scrape(lone.http)).value("headwater_findings_oldest_age_seconds") == 0
    await fetch(
        "INSERT INTO findings (rule, subject, detail, first_seen_at)"
        " SELECT 'a_rule', n::text, '', now() - interval '1 hour' FROM generate_series(1, 3) n"
    )
    page = await scrape(lone.http)
    assert page.value("headwater_findings", rule="a_rule") == 3
    assert 3600 <= page.value("headwater_findings_oldest_age_seconds") < 4000


async def test_the_age_of_what_is_not_sealed(lone: LoneApi) -> None:
    name = "headwater_audit_unsealed_oldest_age_seconds"
    assert (await scrape(lone.http)).value(name) == 0
    await _created(await lone.caller())
    assert (await scrape(lone.http)).value(name) > 0
    await seal_events()
    page = await scrape(lone.http)
    assert (page.value(name), page.families[name].name) == (0, name)
