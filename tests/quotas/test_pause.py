"""`headwater databases pause` and `resume` on the whole service, for each engine."""

import asyncio
from uuid import UUID, uuid4

import pytest

from app.provisioning import operator as moves
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch
from tests.e2e.chaos import ENGINES
from tests.quotas.conftest import Operator
from tests.quotas.tenant_session import refused, session_of
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.store import store
from tests.support.waiting import until


@pytest.mark.parametrize("engine", ENGINES)
async def test_connections_die_at_once_and_the_same_credentials_work_after(
    operator: Operator, caller: Caller, engine: str
) -> None:
    made = await caller.created(db_type=engine)
    async with session_of(made) as session:
        await session.run("CREATE TABLE kept (n int)")
        await session.run("INSERT INTO kept VALUES (1)")
        paused = await operator.pause(made)
        with pytest.raises(Exception, match=r".*"):
            await session.run("SELECT 1")
    assert (paused["status"], paused["paused_reason"]) == ("paused", "operator")
    assert await refused(made)
    shown = data_of(await caller.get(f"/databases/{made['uuid']}"))
    assert (shown["status"], shown["db_password"]) == ("paused", made["db_password"])
    resumed = await operator.resume(made)
    assert (resumed["status"], resumed["paused_reason"]) == ("active", None)
    async with session_of(made) as session:
        assert await session.value("SELECT count(*) FROM kept") == 1
        await session.run("INSERT INTO kept VALUES (2)")
    assert (await operator.events(made))[-2:] == ["database.paused", "database.resumed"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_paused_database_is_renamed_limited_and_deleted(
    operator: Operator, caller: Caller, engine: str
) -> None:
    made = await caller.created(db_type=engine)
    path = f"/databases/{made['uuid']}"
    await operator.pause(made)
    assert data_of(await caller.patch(path, {"name": "renamed"}))["status"] == "paused"
    changed = data_of(await caller.patch(f"{path}/quotas", {"connection_hard_limit": 3}))
    assert (changed["status"], changed["limits"]["connection_hard_limit"]) == ("paused", 3)
    assert await refused(made), "a new limit doesn't open it"
    deleted = data_of(await caller.delete(path))
    assert deleted["has_remote_resources"] is True
    assert await refused(made)
    assert (await caller.get(path)).status_code == 404


async def test_again_and_again_is_once(operator: Operator, caller: Caller) -> None:
    made = await caller.created()
    for _ in range(2):
        assert (await operator.pause(made))["status"] == "paused"
    for _ in range(2):
        assert (await operator.resume(made))["status"] == "active"
    assert not await refused(made)
    events = await operator.events(made)
    assert (events.count("database.paused"), events.count("database.resumed")) == (1, 1)


async def test_what_cannot_be_paused_says_why(operator: Operator, caller: Caller) -> None:
    headwater = operator.headwater
    assert "No such database" in await headwater.refusal("databases", "pause", str(uuid4()))
    made = await caller.created()
    data_of(await caller.delete(f"/databases/{made['uuid']}"))
    for verb in ("pause", "resume"):
        assert "The database is deleted" in await headwater.refusal("databases", verb, made["uuid"])
    async with operator.service.frozen("worker"):
        begun = data_of(await caller.create(), 202)
        assert "The database is provisioning" in await headwater.refusal("databases", "pause", begun["uuid"])


async def test_a_pause_and_a_deletion_at_once_end_deleted(operator: Operator, caller: Caller) -> None:
    made = await caller.created()
    # Asked for while nobody works, all three are on their way at once.
    async with operator.service.frozen("worker"), store(operator.service.control_dsn):
        await moves.pause(DEFAULT_PLANS, UUID(made["uuid"]))
        await moves.resume(UUID(made["uuid"]))
        deleting = asyncio.create_task(caller.delete(f"/databases/{made['uuid']}"))
        await until(lambda: fetch("SELECT 1 FROM databases WHERE uuid = $1 AND status = 'deleted'", UUID(made["uuid"])))
    data_of(await deleting)
    assert await refused(made)
    assert (await operator.inspect(made))["status"] == "deleted"


async def test_a_worker_killed_in_between_loses_no_pause(operator: Operator, caller: Caller) -> None:
    made = await caller.created()
    service = operator.service
    await service.kill("worker")
    async with store(service.control_dsn):
        await moves.pause(DEFAULT_PLANS, UUID(made["uuid"]))
        assert (await fetch("SELECT status FROM databases WHERE uuid = $1", UUID(made["uuid"])))[0][0] == "paused"
    assert not await refused(made), "nobody has ended the access yet"
    await service.start("worker")
    assert await operator.settled(made, lambda record: record.status == "paused")
    assert await refused(made)
    await operator.resume(made)
    assert not await refused(made)
