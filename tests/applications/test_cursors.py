"""Where pages of applications begin: after one of the list, and after nothing else."""

from uuid import UUID

from app.blueprints.service import publish
from app.store.session import fetch, transaction
from tests.support.answers import body_of, data_of, field_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.moves import make_active

SQL = "CREATE TABLE a (id integer)"


async def _active(caller: Caller) -> str:
    uuid: str = data_of(await caller.create(), 202)["uuid"]
    await make_active(uuid)
    return uuid


async def _applied(caller: Caller, database: str, blueprint: str) -> int:
    """It waits: nobody runs it."""
    body = {"blueprint_uuid": blueprint, "wait": False}
    answer = await caller.post(f"/databases/{database}/blueprint_applications", body)
    return int(data_of(answer, 202)["id"])


async def _ids(caller: Caller, path: str, after: int) -> list[int]:
    return [one["id"] for one in body_of(await caller.get(path, params={"starting_after": str(after)}))["data"]]


async def _is_refused(caller: Caller, path: str, after: int) -> bool:
    return field_of(await caller.get(path, params={"starting_after": str(after)})) == "starting_after"


async def test_a_page_begins_after_one_of_the_list(lone: LoneApi) -> None:
    caller, stranger = await lone.caller(), await lone.caller()
    async with transaction():
        shared = str((await publish("shared", SQL, description=None, variables=None)).uuid)
    own = data_of(await caller.post("/blueprints", {"name": "own", "sql_content": SQL}), 201)["uuid"]
    database, neighbour = await _active(caller), await _active(caller)
    first, second = [await _applied(caller, database, shared) for _ in range(2)]
    beside, of_own = await _applied(caller, neighbour, shared), await _applied(caller, neighbour, own)
    foreign = await _applied(stranger, await _active(stranger), shared)
    nobodys = foreign + 1000

    of_database = f"/databases/{database}/blueprint_applications"
    assert await _ids(caller, of_database, second) == [first]
    assert await _ids(caller, of_database, first) == []
    for wrong in (beside, foreign, nobodys, 2**63 - 1):
        assert await _is_refused(caller, of_database, wrong)

    of_blueprint = f"/blueprints/{shared}/blueprint_applications"
    assert await _ids(caller, of_blueprint, beside) == [second, first]
    for wrong in (of_own, foreign, nobodys):
        assert await _is_refused(caller, of_blueprint, wrong)

    # That of a deleted database is listed still; one that was swept is known no more.
    await fetch("UPDATE databases SET status = 'deleted' WHERE uuid = $1", UUID(neighbour))
    assert await _ids(caller, of_blueprint, beside) == [second, first]
    await fetch("DELETE FROM blueprint_applications WHERE id = $1", second)
    for path in (of_database, of_blueprint):
        assert await _is_refused(caller, path, second)


async def test_a_key_for_one_database_begins_after_one_of_that(lone: LoneApi) -> None:
    caller = await lone.caller()
    blueprint = data_of(await caller.post("/blueprints", {"name": "own", "sql_content": SQL}), 201)["uuid"]
    database, neighbour = await _active(caller), await _active(caller)
    mine, beside = [await _applied(caller, where, blueprint) for where in (database, neighbour)]
    body = {"name": "narrow", "permissions": ["blueprints:read"], "databases": [database]}
    made = body_of(await caller.post("/api_keys", body), 201)
    narrow = Caller(caller.http, made["api_key"], caller.user_id, caller.team_id, made["data"]["id"])
    path = f"/blueprints/{blueprint}/blueprint_applications"
    assert await _ids(narrow, path, mine) == []
    assert await _is_refused(narrow, path, beside)
