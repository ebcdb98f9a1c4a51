"""A create with a blueprint, served by the pool: the database is active at once, and the blueprint follows."""

from tests.applications.support import TWO_TABLES, ended, saved, tables
from tests.pool.conftest import POOL_SIZE
from tests.support.answers import body_of
from tests.support.client import Caller
from tests.support.pools import full
from tests.support.service import RunningService


async def test_a_claimed_database_gets_its_blueprint(pooled: RunningService, caller: Caller) -> None:
    blueprint = await saved(caller, TWO_TABLES)
    for limit in (None, 5):
        members = await full(POOL_SIZE)
        body = body_of(await caller.create(blueprint_uuid=blueprint, connection_hard_limit=limit), 201)
        assert body["data"]["uuid"] == str(members[0])
        assert (await ended(caller, body["blueprint_application"]))["status"] == "completed"
        assert await tables(body["data"]) == ["a", "b"]
    waited = body_of(await caller.create(wait=True, blueprint_uuid=blueprint), 201)
    assert waited["blueprint_application"]["status"] == "completed"
