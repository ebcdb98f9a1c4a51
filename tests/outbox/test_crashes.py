"""An accepted request is never lost: API processes that die, and a Temporal that is away, on the real service."""

import asyncio
from uuid import UUID

import httpx

from app.blueprints.large_scripts import LargeScripts
from app.contracts.queues import provision_workflow_id
from app.core.ids import new_uuid
from app.databases.pool.claim import ReadyMembers
from app.databases.schemas import CreateDatabase
from app.local.ports import LOOPBACK
from app.provisioning.creation import DatabaseCreation
from app.quotas.plans import DEFAULT_PLANS
from app.store.notify import RowWatch
from app.store.session import fetch, transaction
from tests.support.answers import body_of, data_of
from tests.support.client import Caller
from tests.support.moves import events_of
from tests.support.ports import free_port
from tests.support.principals import principal_of
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waiting import LIMIT_SECONDS, until


async def becomes_active(caller: Caller, uuid: str) -> None:
    async def active() -> bool:
        return bool(data_of(await caller.get(f"/databases/{uuid}"))["status"] == "active")

    await until(active)


async def test_temporal_away_at_the_create(service: RunningService) -> None:
    nowhere = f"{LOOPBACK}:{free_port()}"
    async with service.another_api(TEMPORAL_ADDRESS=nowhere) as (http, _):
        caller = await service.caller(http=http)
        async with asyncio.timeout(LIMIT_SECONDS):
            uuid = data_of(await caller.create(), 202)["uuid"]
        await becomes_active(caller, uuid)
        waited = await caller.create(wait=True)
        assert data_of(waited, 201)["status"] == "active"


async def test_a_death_between_commit_and_start(service: RunningService) -> None:
    caller = await service.caller()
    async with store(service.control_dsn):
        async with transaction():
            accepted = await DatabaseCreation(
                principal_of(caller),
                CreateDatabase(name="a"),
                plans=DEFAULT_PLANS,
                box=service.box,
                members=ReadyMembers(),
                watch=RowWatch(service.control_dsn),
                scripts=LargeScripts(),
            ).begin()
        await becomes_active(caller, accepted.subject)
        assert await events_of(accepted.subject) == ["database.provisioning_started", "database.provisioned"]
        # The workflow may be done before whoever has started it has noted that.
        await until(lambda: _is_started(provision_workflow_id(UUID(accepted.subject))))


async def _is_started(workflow_id: str) -> bool:
    return not await fetch("SELECT 1 FROM workflow_starts WHERE workflow_id = $1", workflow_id)


async def test_an_api_that_is_killed_while_a_client_waits(service: RunningService) -> None:
    key = str(new_uuid())
    async with (
        service.frozen("worker"),
        service.another_api(IDEMPOTENCY_LEASE_SECONDS="1") as (http, process),
        store(service.control_dsn),
    ):
        caller = await service.caller(http=http)
        asked = asyncio.create_task(caller.create(wait=True, key=key))
        rows = await until(lambda: fetch("SELECT uuid FROM databases WHERE team_id = $1", caller.team_id))
        await process.kill()
        (lost,) = await asyncio.gather(asked, return_exceptions=True)
        assert isinstance(lost, httpx.HTTPError)
    retrying = Caller(service.http, caller.api_key, caller.user_id, caller.team_id, caller.key_id)
    answer = await until(lambda: unless_in_progress(retrying, key))
    assert answer is not None
    assert data_of(answer, 201)["uuid"] == str(rows[0]["uuid"])
    assert "idempotency_replay" not in body_of(answer, 201)
    assert len(body_of(await retrying.get("/databases"))["data"]) == 1
    async with store(service.control_dsn):
        assert await events_of(str(rows[0]["uuid"])) == ["database.provisioning_started", "database.provisioned"]


async def unless_in_progress(caller: Caller, key: str) -> httpx.Response | None:
    answer = await caller.create(wait=True, key=key)
    return None if answer.status_code == 409 else answer


async def test_a_delete_while_it_is_provisioning(service: RunningService) -> None:
    caller = await service.caller()
    async with service.frozen("worker"):
        uuid = data_of(await caller.create(), 202)["uuid"]
        deleted = data_of(await caller.delete(f"/databases/{uuid}"))
    assert (deleted["cancelled_provision_jobs"], deleted["has_remote_resources"]) == (1, False)
    assert deleted["destroy_scheduled_at"] is None
    async with store(service.control_dsn):
        await until(lambda: fetch("SELECT 1 FROM databases WHERE uuid = $1 AND destroyed_at IS NOT NULL", UUID(uuid)))
        (row,) = await fetch("SELECT remote_since FROM databases WHERE uuid = $1", UUID(uuid))
        assert row["remote_since"] is None
        assert await events_of(uuid) == ["database.provisioning_started", "database.deleted"]
