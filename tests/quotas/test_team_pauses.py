"""Teams pause and resume their databases; what an operator or the plan has paused, they don't lift."""

from dataclasses import replace
from typing import Any

import pytest

from app.auth.keys import create_key
from app.contracts.base import PauseReason
from app.databases import access, records
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import transaction
from tests.e2e.chaos import ENGINES
from tests.quotas.conftest import Operator
from tests.quotas.tenant_session import refused, session_of
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.store import store


def path_of(made: dict[str, Any]) -> str:
    return f"/databases/{made['uuid']}/pauses"


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_team_pauses_and_resumes(operator: Operator, caller: Caller, engine: str) -> None:
    made = await caller.created(db_type=engine)
    async with session_of(made) as session:
        await session.run("CREATE TABLE kept (n int)")
        paused = body_of(await caller.post(path_of(made), None, key="p"))
        with pytest.raises(Exception, match=r".*"):
            await session.run("SELECT 1")
    assert (paused["data"]["status"], paused["operation"]["status"]) == ("paused", "succeeded")
    assert await refused(made)
    assert (await operator.inspect(made))["paused_reason"] == "team"
    again = body_of(await caller.post(path_of(made), None))
    assert again["operation"] == paused["operation"], "nothing happened"
    assert body_of(await caller.post(path_of(made), None, key="p"))["idempotency_replay"] is True
    resumed = body_of(await caller.delete(path_of(made)))
    assert (resumed["data"]["status"], resumed["operation"]["status"]) == ("active", "succeeded")
    async with session_of(made) as session:
        assert await session.value("SELECT count(*) FROM kept") == 0
    assert data_of(await caller.delete(path_of(made)))["status"] == "active"
    assert (await operator.events(made))[-2:] == ["database.paused", "database.resumed"]
    data_of(await caller.delete(f"/databases/{made['uuid']}"))


async def test_an_operators_pause_is_not_the_teams(operator: Operator, caller: Caller) -> None:
    made = await caller.created()
    data_of(await caller.post(path_of(made), None))
    await operator.pause(made)
    for answer in (await caller.delete(path_of(made)), await caller.post(path_of(made), None)):
        assert error_of(answer, 409, "paused_otherwise")["details"] == {"reason": "operator"}
    assert data_of(await caller.get(f"/databases/{made['uuid']}"))["status_reason"]["code"] == "operator"
    assert await refused(made)
    assert (await operator.resume(made))["status"] == "active"
    data_of(await caller.post(path_of(made), None))
    assert (await operator.resume(made))["status"] == "active"
    data_of(await caller.delete(f"/databases/{made['uuid']}"))


@pytest.mark.parametrize("reason", [PauseReason.RUNTIME, PauseReason.STORAGE])
async def test_nor_is_the_plans(operator: Operator, caller: Caller, reason: PauseReason) -> None:
    made = await caller.created()
    async with operator.service.frozen("worker"):  # or a measurement finds that nothing is used up
        async with store(operator.service.control_dsn), transaction():
            record = await records.find_owned(made["uuid"], [caller.team_id], lock=True)
            assert record is not None
            await access.pause(DEFAULT_PLANS, record, reason)
        for answer in (await caller.delete(path_of(made)), await caller.post(path_of(made), None)):
            assert error_of(answer, 409, "paused_otherwise")["details"] == {"reason": reason.value}
        assert data_of(await caller.get(f"/databases/{made['uuid']}"))["status_reason"]["code"] == reason.value
    data_of(await caller.delete(f"/databases/{made['uuid']}"))


async def test_cancelling_a_teams_pause_lifts_no_operators(operator: Operator, caller: Caller) -> None:
    made = await caller.created()
    async with operator.service.frozen("worker"):
        async with store(operator.service.control_dsn), transaction():
            record = await records.find_owned(made["uuid"], [caller.team_id], lock=True)
            assert record is not None
            await access.pause(DEFAULT_PLANS, record, PauseReason.TEAM)
            again = await records.find_for_update(record.uuid)
            assert again is not None
            await access.pause(DEFAULT_PLANS, again, PauseReason.OPERATOR)
        (open_one,) = data_of(await caller.get("/operations", params={"database_uuid": made["uuid"], "type": "pause"}))
        refusal = await operator.headwater.refusal("operations", "cancel", "--yes", open_one["uuid"])
        assert "for another reason by now" in refusal
    await operator.resume(made)
    data_of(await caller.delete(f"/databases/{made['uuid']}"))


async def test_it_is_the_teams_alone(operator: Operator, caller: Caller) -> None:
    made = await caller.created()
    stranger = await operator.service.caller()
    error_of(await stranger.post(path_of(made), None), 404, "not_found")
    error_of(await stranger.delete(path_of(made)), 404, "not_found")
    async with store(operator.service.control_dsn):
        key = await create_key(user_id=caller.user_id, name="reads", scopes=["databases:read"])
    reader = replace(caller, api_key=key.api_key)
    error_of(await reader.post(path_of(made), None), 403, "insufficient_scope")
    error_of(await reader.delete(path_of(made)), 403, "insufficient_scope")
    data_of(await caller.delete(f"/databases/{made['uuid']}"))
