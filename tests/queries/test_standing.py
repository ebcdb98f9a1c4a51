"""Who loses the key or the team while the model thinks is not answered, and nothing is executed for them."""

import asyncio

import pytest

from app.auth.members import delete_member
from app.store.session import execute
from tests.queries.conftest import Asked, database_of
from tests.support.answers import error_of
from tests.support.model_server import script, sql
from tests.support.service import RunningService
from tests.support.store import store
from tests.support.waiting import until

TABLES = ("CREATE TABLE kept (n BIGINT)",)


@pytest.fixture
async def asked(service: RunningService) -> Asked:
    """Of somebody of this test alone."""
    return await database_of(service, "postgres", tables=TABLES)


@pytest.mark.parametrize("kind", ["read", "write"])
@pytest.mark.parametrize("lost", ["key", "team"])
async def test_who_may_no_longer_ask(service: RunningService, asked: Asked, kind: str, lost: str) -> None:
    model = service.model
    model.released.clear()
    model.seen.clear()
    text = "SELECT count(*) FROM kept" if kind == "read" else "INSERT INTO kept VALUES (1)"
    question = script(sql(text, kind) | {"held": True})
    asking = asyncio.ensure_future(asked.ask(question=question))
    await until(lambda: any(question in body["messages"][1]["content"] for body in model.seen))
    async with store(service.control_dsn):
        if lost == "key":
            await execute("UPDATE api_keys SET revoked_at = now() WHERE id = $1", asked.caller.key_id)
        else:
            await delete_member(asked.caller.team_id, asked.caller.user_id)
    model.released.set()
    error_of(await asking, 403, "invalid_api_key" if lost == "key" else "not_a_member")
    assert await asked.run("SELECT count(*) FROM kept") == [(0,)]
