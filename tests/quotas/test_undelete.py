"""`headwater databases undelete` on the whole service, for each engine."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.core.errors import AppError, DatabaseDestroyed
from app.provisioning.undeletion import undelete
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch
from tests.e2e.chaos import ENGINES
from tests.quotas.conftest import Operator
from tests.quotas.tenant_session import refused, session_of
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.store import store
from tests.support.waiting import until

STAYS = ("uuid", "name", "team", "engine", "plan", "engine_name", "connections", "address")


async def delete(caller: Caller, made: dict[str, Any]) -> dict[str, Any]:
    deleted: dict[str, Any] = data_of(await caller.delete(f"/databases/{made['uuid']}"))
    return deleted


async def bring_back(operator: Operator, made: dict[str, Any]) -> dict[str, Any]:
    details: dict[str, Any] = await operator.headwater.json("databases", "undelete", made["uuid"])
    return details


async def end_grace(operator: Operator, made: dict[str, Any]) -> None:
    """Moves it to now, and waits until the data is gone. The workflow is woken as any change of the row wakes it."""
    await operator.sql("UPDATE databases SET destroy_at = now() WHERE uuid = $1", UUID(made["uuid"]))
    await operator.wake(made)
    await until(lambda: _destroyed(operator, made))


async def _destroyed(operator: Operator, made: dict[str, Any]) -> bool:
    return (await operator.inspect(made))["destroyed_at"] is not None


@pytest.mark.parametrize("engine", ENGINES)
async def test_it_is_back_with_its_data_and_its_password_and_can_be_deleted_again(
    operator: Operator, caller: Caller, engine: str
) -> None:
    made = await caller.created("back", db_type=engine)
    path = f"/databases/{made['uuid']}"
    async with session_of(made) as session:
        await session.run("CREATE TABLE kept (n int)")
        await session.run("INSERT INTO kept VALUES (1)")
    before = await operator.inspect(made)
    await delete(caller, made)
    assert await refused(made)
    back = await bring_back(operator, made)
    assert [back[field] for field in STAYS] == [before[field] for field in STAYS]
    assert (back["status"], back["deleted_at"], back["revoked_at"], back["destroy_at"]) == ("active", None, None, None)
    async with session_of(made) as session:
        assert await session.value("SELECT count(*) FROM kept") == 1
        await session.run("INSERT INTO kept VALUES (2)")
    shown = data_of(await caller.get(path))
    assert (shown["status"], shown["db_password"]) == ("active", made["db_password"])
    assert (await operator.events(made))[-3:] == ["database.deleted", "database.undeleted", "database.resumed"]
    assert (await delete(caller, made))["has_remote_resources"] is True
    assert await refused(made)
    await end_grace(operator, made)
    assert (await operator.inspect(made))["status"] == "deleted"
    assert (await operator.events(made)).count("database.deleted") == 2


@pytest.mark.parametrize("engine", ENGINES)
async def test_what_was_paused_or_frozen_is_so_again(operator: Operator, caller: Caller, engine: str) -> None:
    made = await caller.created(db_type=engine)
    await operator.pause(made)
    await delete(caller, made)
    back = await bring_back(operator, made)
    assert (back["status"], back["paused_reason"]) == ("paused", "operator")
    assert await refused(made)
    assert (await operator.events(made))[-1] == "database.undeleted"
    await operator.resume(made)
    assert not await refused(made, "CREATE TABLE written (n int)")
    await operator.freeze(made)
    await delete(caller, made)
    assert (await bring_back(operator, made))["frozen_at"] is not None
    assert not await refused(made, "SELECT 1")
    assert await refused(made, "INSERT INTO written VALUES (1)")


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_client_undeletes_again_and_again(operator: Operator, caller: Caller, engine: str) -> None:
    made = await caller.created(db_type=engine)
    path, first = f"/databases/{made['uuid']}", str(uuid4())
    async with session_of(made) as session:
        await session.run("CREATE TABLE kept (n int)")
    for round_ in range(4):
        data_of(await caller.delete(path, key=first if round_ == 0 else None))
        assert await refused(made)
        back = data_of(await caller.post(f"{path}/undeletions", None))
        assert (back["status"], back["db_name"]) == ("active", made["db_name"])
        assert not await refused(made, "INSERT INTO kept VALUES (1)")
        assert body_of(await caller.delete(path, key=first))["idempotency_replay"] is True
        assert not await refused(made)
    data_of(await caller.delete(path))
    await end_grace(operator, made)
    error_of(await caller.post(f"{path}/undeletions", None), 404, "not_found")
    assert (await operator.events(made))[-2:] == ["database.deleted", "database.destroyed"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_client_gets_back_what_was_paused_or_frozen(operator: Operator, caller: Caller, engine: str) -> None:
    made = await caller.created(db_type=engine)
    path = f"/databases/{made['uuid']}"
    await operator.pause(made)
    data_of(await caller.delete(path))
    assert data_of(await caller.post(f"{path}/undeletions", None))["status"] == "paused"
    assert await refused(made)
    await operator.resume(made)
    await operator.freeze(made)
    data_of(await caller.delete(path))
    assert data_of(await caller.post(f"{path}/undeletions", None))["status"] == "active"
    assert await refused(made, "CREATE TABLE written (n int)")


async def test_an_end_that_came_while_no_worker_ran(operator: Operator, caller: Caller) -> None:
    end = (datetime.now(UTC) + timedelta(minutes=30)).isoformat()
    made, service = await caller.created(expires_at=end), operator.service
    await until(lambda: _expiring(operator, made))
    await service.kill("worker")
    await operator.sql("UPDATE databases SET expires_at = now() WHERE uuid = $1", UUID(made["uuid"]))
    assert not await refused(made)
    await service.start("worker")
    await until(lambda: refused(made))
    events = await operator.events(made)
    assert (events.count("database.expiring"), events[-1]) == (1, "database.deleted")
    back = data_of(await caller.post(f"/databases/{made['uuid']}/undeletions", None))
    assert (back["status"], back["expires_at"]) == ("active", None)
    assert not await refused(made)


async def _expiring(operator: Operator, made: dict[str, Any]) -> bool:
    return "database.expiring" in await operator.events(made)


async def test_workers_killed_in_between_lose_nothing(operator: Operator, caller: Caller) -> None:
    made, service = await caller.created(), operator.service
    await service.kill("worker")
    deleting = asyncio.create_task(caller.delete(f"/databases/{made['uuid']}"))
    async with store(service.control_dsn):
        await until(lambda: fetch("SELECT 1 FROM databases WHERE uuid = $1 AND status = 'deleted'", UUID(made["uuid"])))
        await undelete(DEFAULT_PLANS, UUID(made["uuid"]))
    await service.start("worker")
    assert await operator.settled(made, lambda record: record.status == "active")
    assert not await refused(made), "the deletion that was overtaken ends no access any more"
    await asyncio.gather(deleting, return_exceptions=True)
    await delete(caller, made)
    await service.kill("worker")
    async with store(service.control_dsn):
        await undelete(DEFAULT_PLANS, UUID(made["uuid"]))
    await service.start("worker")
    assert await operator.settled(made, lambda record: record.status == "active")
    assert not await refused(made)
    await delete(caller, made)
    assert await refused(made)
    await end_grace(operator, made)


async def test_it_counts_against_its_team_again(operator: Operator) -> None:
    caller = await operator.service.caller(tier="free")
    first = await caller.created()
    await delete(caller, first)
    second = await caller.created()
    assert "can have one database" in await operator.headwater.refusal("databases", "undelete", first["uuid"])
    assert (await operator.inspect(first))["status"] == "deleted"
    await delete(caller, second)
    await bring_back(operator, first)
    error_of(await caller.create(), 422, "plan_limit_exceeded")


async def test_many_at_once_bring_back_one(operator: Operator) -> None:
    caller = await operator.service.caller(tier="free")
    made = []
    for _ in range(3):
        made.append(await caller.created())
        await delete(caller, made[-1])
    async with store(operator.service.control_dsn):
        answers = await asyncio.gather(
            *(undelete(DEFAULT_PLANS, UUID(one["uuid"])) for one in made * 4), return_exceptions=True
        )
    assert len([answer for answer in answers if not isinstance(answer, BaseException)]) == 1
    codes = {answer.code for answer in answers if isinstance(answer, AppError)}
    assert codes == {"plan_limit_exceeded", "not_deleted"}


async def test_what_cannot_be_brought_back_says_why(operator: Operator, caller: Caller) -> None:
    headwater = operator.headwater
    assert "No such database" in await headwater.refusal("databases", "undelete", str(uuid4()))
    made = await caller.created()
    assert "The database is active, not deleted" in await headwater.refusal("databases", "undelete", made["uuid"])
    await delete(caller, made)
    await end_grace(operator, made)
    assert "its data is destroyed" in await headwater.refusal("databases", "undelete", made["uuid"])


async def test_a_host_whose_connections_are_allocated_to_others_refuses(operator: Operator, caller: Caller) -> None:
    made = await caller.created(plan="launch")
    await delete(caller, made)
    of_host = "FROM engine_hosts h JOIN databases d ON d.host_id = h.id WHERE d.uuid = $1"
    [host] = await operator.sql(f"SELECT h.id, h.connection_capacity {of_host}", UUID(made["uuid"]))
    set_capacity = "UPDATE engine_hosts SET connection_capacity = $2 WHERE id = $1"
    # Allocated several times over, it is still too little, whatever else is on the host.
    await operator.sql(set_capacity, host["id"], 1)
    try:
        said = await operator.headwater.refusal("databases", "undelete", made["uuid"])
    finally:
        await operator.sql(set_capacity, host["id"], host["connection_capacity"])
    assert "has no room for its 50 connections" in said


async def test_an_end_that_is_moved_holds_both_ways(operator: Operator, caller: Caller) -> None:
    made = await caller.created()
    later = "UPDATE databases SET destroy_at = destroy_at + $2::interval WHERE uuid = $1"
    await delete(caller, made)
    await operator.sql(later, UUID(made["uuid"]), timedelta(days=9))
    await operator.wake(made)
    await operator.deletion_says(made, (await operator.inspect(made))["destroy_at"][:10])
    assert not await _destroyed(operator, made)
    await end_grace(operator, made)


async def test_once_the_grace_is_over_nothing_brings_it_back_though_the_data_is_there(
    operator: Operator, caller: Caller
) -> None:
    made = await caller.created()
    await delete(caller, made)
    # The worker is at rest then: frozen in a transaction, it would keep the team locked.
    await operator.deletion_says(made, (await operator.inspect(made))["destroy_at"][:10])
    async with operator.service.frozen("worker"):
        await operator.sql("UPDATE databases SET destroy_at = now() WHERE uuid = $1", UUID(made["uuid"]))
        async with store(operator.service.control_dsn):
            with pytest.raises(DatabaseDestroyed):
                await undelete(DEFAULT_PLANS, UUID(made["uuid"]))
