"""A backup of which the store lost or changed something never becomes a database."""

from uuid import UUID

import pytest

from app.contracts.base import Engine
from app.databases.records import find
from app.hosts.adapters import Adapters
from tests.restores.conftest import ENGINES
from tests.restores.support import backed_up, damage, filled, full, session, visits
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.waited import WAIT, ended, waited_in_vain
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize("engine", ENGINES)


async def test_no_database_is_made_from_it(
    service: RunningService, caller: Caller, adapters: Adapters, engine: Engine
) -> None:
    backup = await backed_up(caller, await filled(caller, engine))
    damage(service, backup)
    body = body_of(await caller.create("again", source={"backup_uuid": backup["uuid"]}), 202)
    operation = await ended(caller, body["operation"]["uuid"])
    assert (operation["status"], operation["reason"]["code"]) == ("failed", "backup_damaged")
    error_of(await caller.get(f"/databases/{body['data']['uuid']}"), 404, "not_found")
    await until(lambda: _gone(UUID(body["data"]["uuid"])))
    record = await find(UUID(body["data"]["uuid"]))
    assert record is not None
    assert record.provisioned_at is None
    adapter = await adapters.of_host(record.host_id)
    assert record.engine_name not in {one.name for one in await adapter.list_tenants()}


async def test_a_restore_in_place_of_it_touches_nothing(
    service: RunningService, caller: Caller, engine: Engine
) -> None:
    made = await filled(caller, engine)
    backup = await backed_up(caller, made)
    damage(service, backup)
    async with session(made) as tenant:
        await tenant.execute("INSERT INTO visits VALUES (100, 'later')")
        answer = await caller.post(
            f"/databases/{made['uuid']}/restorations", {"backup_uuid": backup["uuid"]}, params=WAIT
        )
        if waited_in_vain(answer):
            await ended(caller, body_of(answer, 202)["operation"]["uuid"])
        else:
            assert error_of(answer, 422, "restoration_failed")["details"]["reason"] == "backup_damaged"
        # Its session was never ended.
        await tenant.execute("INSERT INTO visits VALUES (101, 'later')")
    assert await visits(made) == 5
    assert (await full(caller, made["uuid"]))["status"] == "active"
    operation = data_of(await caller.get("/operations", params={"database_uuid": made["uuid"], "type": "restore"}))[0]
    assert (operation["status"], operation["reason"]["code"]) == ("failed", "backup_damaged")


async def _gone(database: UUID) -> bool:
    record = await find(database)
    return record is not None and record.destroyed_at is not None
