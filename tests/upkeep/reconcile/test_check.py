"""The consistency check: quiet about what is well, and specific about what is not.

The engine servers are shared with other tests, so only what each test made is looked for.
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest_asyncio

from app.contracts.base import Engine
from app.core.ids import engine_name, engine_password, marker
from app.engines.base import EngineLimits, Tenant
from app.hosts.adapters import Adapters
from app.store.session import fetch, transaction
from app.upkeep.reconcile.findings import Report
from app.upkeep.reconcile.records import check_records
from app.upkeep.reconcile.service import check
from tests.support.answers import body_of
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waiting import until
from tests.upkeep.reconcile.conftest import AGE

_AGO = timedelta(hours=1)


@pytest_asyncio.fixture(autouse=True)
async def _store(service: RunningService) -> AsyncIterator[None]:
    async with store(service.control_dsn):
        yield


def rules_about(report: Report, subject: str) -> list[str]:
    return [violation.rule for violation in report.violations if violation.subject == subject]


async def test_what_is_well_is_not_mentioned(service: RunningService, caller: Caller) -> None:
    active, deleted = await caller.created(), await caller.created()
    await caller.delete(f"/databases/{deleted['uuid']}")
    report = await check(service.box, AGE)
    for made in (active, deleted):
        assert rules_about(report, made["uuid"]) == []
        assert rules_about(report, made["db_name"]) == []


async def test_an_active_database_that_refuses_its_tenant(service: RunningService, caller: Caller) -> None:
    made = await caller.created()
    tenant = await asyncpg.connect(made["connection_string"])
    try:
        await tenant.execute(f"ALTER ROLE \"{made['db_username']}\" PASSWORD '{engine_password()}'")
    finally:
        await tenant.close()
    assert rules_about(await check(service.box, AGE), made["uuid"]) == ["active_unreachable"]


async def test_a_tenant_that_holds_all_its_connections_is_well(service: RunningService, caller: Caller) -> None:
    made = await caller.created(connection_hard_limit=1)
    tenant = await asyncpg.connect(made["connection_string"])
    try:
        assert rules_about(await check(service.box, AGE), made["uuid"]) == []
    finally:
        await tenant.close()


async def test_what_a_host_holds_and_no_record_names(service: RunningService) -> None:
    adapters = Adapters(service.box)
    rows = await fetch("SELECT id FROM engine_hosts WHERE engine = $1 ORDER BY id", Engine.POSTGRES.value)
    adapter = await adapters.of_host(rows[0]["id"])
    stray = Tenant(name=engine_name(), password=engine_password(), marker=marker(uuid4()))
    try:
        await adapter.create(stray, EngineLimits(connections=1))
        assert rules_about(await check(service.box, AGE), stray.name) == ["orphan_on_host"]
        await adapter.destroy(stray)
        assert rules_about(await check(service.box, AGE), stray.name) == []
    finally:
        await adapter.destroy(stray)
        await adapters.close()


async def test_rows_between_two_states(caller: Caller) -> None:
    made = await caller.created()
    uuid = UUID(made["uuid"])
    wrong = {
        "provisioning_stuck": "status = 'provisioning', created_at = now() - $2::interval",
        "limits_stuck": "status = 'active', limits_revision = 9, updated_at = now() - $2::interval",
        "access_stuck": "status = 'paused', limits_revision = 0, access_revision = 9, access_changed_at = now()"
        " - $2::interval",
        "revocation_stuck": "status = 'deleted', revoked_at = NULL, deleted_at = now() - $2::interval",
        "destruction_stuck": "status = 'deleted', revoked_at = now(), destroy_at = now() - $2::interval",
    }
    for rule, change in wrong.items():
        await fetch(f"UPDATE databases SET {change} WHERE uuid = $1", uuid, _AGO)
        found = [one.rule for one in await check_records(timedelta(minutes=1)) if one.subject == made["uuid"]]
        assert found == [rule]
        patient = [one.rule for one in await check_records(2 * _AGO) if one.subject == made["uuid"]]
        assert patient == []
    await fetch("UPDATE databases SET destroyed_at = now() WHERE uuid = $1", uuid)


async def test_starts_and_keys_that_nobody_finishes(caller: Caller) -> None:
    workflow_id, key = f"test/{uuid4()}", str(uuid4())
    await fetch(
        "INSERT INTO workflow_starts (workflow, workflow_id, input, next_attempt_at, created_at)"
        " VALUES ('Test', $1, '{}', 'infinity', now() - $2::interval)",
        workflow_id,
        _AGO,
    )
    await fetch(
        "INSERT INTO idempotency_keys (user_id, key, fingerprint, owner, locked_until, created_at, expires_at)"
        " SELECT id, $1, '', $2, now() + $3::interval, now() - $3::interval, now() + $3::interval FROM users LIMIT 1",
        key,
        uuid4(),
        _AGO,
    )
    found = {one.subject.rpartition("/")[2]: one.rule for one in await check_records(timedelta(minutes=1))}
    assert found[workflow_id.rpartition("/")[2]] == "workflow_start_stuck"
    assert found[key] == "idempotency_key_stuck"
    await fetch("UPDATE idempotency_keys SET locked_until = now() - interval '1 hour' WHERE key = $1", key)
    later = {one.subject.rpartition("/")[2] for one in await check_records(timedelta(minutes=1))}
    assert key not in later, "a retry can take it over"
    await fetch("DELETE FROM workflow_starts WHERE workflow_id = $1", workflow_id)
    await fetch("DELETE FROM idempotency_keys WHERE key = $1", key)


async def test_events_that_nobody_dispatched(caller: Caller) -> None:
    rows = await fetch(
        "INSERT INTO webhook_endpoints (team_id, url, events) VALUES ($1, 'https://[::1]/', '{database.deleted}')"
        " RETURNING id",
        caller.team_id,
    )
    endpoint = rows[0]["id"]
    made = await caller.created()
    await caller.delete(f"/databases/{made['uuid']}")
    rows = await fetch("SELECT id, uuid FROM events WHERE team_id = $1 AND type = 'database.deleted'", caller.team_id)
    event, subject = rows[0]["id"], str(rows[0]["uuid"])

    async def found() -> list[str]:
        return [one.rule for one in await check_records(timedelta(minutes=1)) if one.subject == subject]

    await fetch("UPDATE webhook_endpoints SET created_at = now() - 2 * $2::interval WHERE id = $1", endpoint, _AGO)
    await fetch(
        "UPDATE events SET created_at = now() - $2::interval, dispatched_at = now() - $2::interval WHERE id = $1",
        event,
        _AGO,
    )

    async def delivered() -> bool:
        return bool(await fetch("SELECT 1 FROM webhook_deliveries WHERE event_id = $1", event))

    await until(delivered)
    assert await found() == []
    await fetch("DELETE FROM webhook_deliveries WHERE event_id = $1", event)
    assert await found() == ["event_without_delivery"]
    await fetch("UPDATE webhook_endpoints SET events = '{database.provisioned}' WHERE id = $1", endpoint)
    assert await found() == []
    # Its team lets it have them from now on.
    body_of(await caller.patch(f"/webhook_endpoints/{endpoint}", {"events": ["database.deleted"]}))
    assert await found() == []


async def test_deliveries_that_nobody_makes(caller: Caller) -> None:
    rows = await fetch(
        "INSERT INTO webhook_endpoints (team_id, url) VALUES ($1, 'https://[::1]/') RETURNING id", caller.team_id
    )
    webhook_id = f"msg_{uuid4().hex}"
    await fetch(
        "INSERT INTO webhook_deliveries (webhook_id, endpoint_id, event_type, payload, next_attempt_at)"
        " VALUES ($1, $2, 'ping', '{}', now() - interval '1 hour')",
        webhook_id,
        rows[0]["id"],
    )

    async def found() -> list[str]:
        return [one.rule for one in await check_records(timedelta(minutes=1)) if one.subject == webhook_id]

    assert await found() == ["delivery_stuck"]
    mine = ("WHERE webhook_id = $1", webhook_id)
    await fetch(f"UPDATE webhook_deliveries SET next_attempt_at = now() + interval '1 hour' {mine[0]}", mine[1])
    assert await found() == []
    # One that waits is due when its endpoint is.
    await fetch(
        f"UPDATE webhook_deliveries SET next_attempt_at = now() - interval '1 hour', waiting = true {mine[0]}", mine[1]
    )
    for due, claimed, rules in (
        ("NULL", "NULL", ["delivery_stuck"]),
        ("now() - interval '1 hour'", "NULL", ["delivery_stuck"]),
        ("now() - interval '1 hour'", "now()", []),
        ("now() + interval '5 minutes'", "NULL", []),
    ):
        # Not claimed by the running service, which would make the attempt.
        async with transaction():
            await fetch(
                f"UPDATE webhook_endpoints SET next_attempt_at = {due}, claimed_until = {claimed} WHERE id = $1",
                rows[0]["id"],
            )
            assert await found() == rules
    await fetch("DELETE FROM webhook_endpoints WHERE id = $1", rows[0]["id"])
