"""A database of each engine from its first statement to its last, by the engines' own drivers."""

import pytest

from app.contracts.base import Engine
from tests.e2e.audit import settled
from tests.e2e.chaos import ENGINES
from tests.e2e.hosts import login, mysql, objects, postgres
from tests.e2e.patient_client import PatientClient, client_of
from tests.support.stack import LiveStack


@pytest.mark.parametrize("engine", ENGINES)
async def test_from_create_to_destruction(stack: LiveStack, engine: Engine) -> None:
    async with client_of(stack) as client:
        made = await client.create(engine)
        assert made.status == 201
        uuid, address = made.data["uuid"], made.data["connection_string"]
        assert await login(address) == 1

        renamed = await client.send("PATCH", f"/databases/{uuid}", body={"name": "another-name"})
        assert renamed.data["name"] == "another-name"
        assert await login(address) == 2

        await _is_limited(client, engine, uuid, address)

        gone = await client.delete(uuid)
        assert gone.data["has_remote_resources"]
        assert (await client.get(uuid)).status == 404
    await settled(stack)
    left = [entry for host in stack.file.hosts for entry in await objects(host)]
    assert not [entry for entry in left if made.data["db_name"] in entry]


async def _is_limited(client: PatientClient, engine: Engine, uuid: str, address: str) -> None:
    changed = await client.send("PATCH", f"/databases/{uuid}/quotas", body={"connection_hard_limit": 1})
    assert changed.data["limits"]["connection_hard_limit"] == 1
    open_one = postgres if engine is Engine.POSTGRES else mysql
    async with open_one(address):
        with pytest.raises(Exception, match=r"too many connections|max_user_connections|MAX_USER_CONNECTIONS"):
            async with open_one(address):
                pass
