"""A database gets the data of a backup, and stays the same database."""

from typing import Any
from uuid import UUID

import pytest

from app.contracts.base import Engine
from app.databases import records
from app.hosts.adapters import Adapters
from app.store.session import fetch
from tests.restores.conftest import ENGINES
from tests.restores.support import backed_up, filled, full, session, visits
from tests.support.answers import body_of, data_of, error_of
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.waited import WAIT, ended, waited
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize("engine", ENGINES)
_SAME = ("name", "host", "port", "db_name", "db_username", "db_password", "connection_string", "limits", "status")


async def test_it_holds_what_the_backup_held_and_nothing_else_of_it_changes(
    caller: Caller, adapters: Adapters, engine: Engine
) -> None:
    made = await filled(caller, engine)
    reader = {"name": "reports", "access": "read_only"}
    user = data_of(await caller.post(f"/databases/{made['uuid']}/users", reader), 201)
    if engine is Engine.POSTGRES:
        async with session(made) as tenant:
            await tenant.execute("ALTER TABLE visits ENABLE ROW LEVEL SECURITY")
            await tenant.execute(f"CREATE POLICY few ON visits TO {user['db_username']} USING (id < 2)")
    readable = 2 if engine is Engine.POSTGRES else 3
    backup = await backed_up(caller, made)
    async with session(made) as tenant:
        await tenant.execute("INSERT INTO visits VALUES (100, 'later')")
        await tenant.execute("CREATE TABLE later (id integer)")
    before = await full(caller, made["uuid"])
    answer = await waited(caller, await _restore(caller, made, backup), "/databases", status=200)
    assert answer["operation"]["status"] == "succeeded"
    after = await full(caller, made["uuid"])
    assert {key: after[key] for key in _SAME} == {key: before[key] for key in _SAME}
    assert await visits(after) == 3
    assert await visits(after | user) == readable, "its users read what they could read of it"
    async with session(after) as tenant:
        await tenant.execute("CREATE TABLE later (id integer)")
    kept = data_of(await caller.get(f"/databases/{made['uuid']}/backups"))
    first = next(one for one in kept if one["kind"] == "before_restore")
    again = await caller.created("was", source={"backup_uuid": first["uuid"]})
    assert await visits(again) == 4, "what there was is in the backup that was taken first"
    await _nothing_is_left(made, adapters)


@pytest.mark.usefixtures("adapters")
async def test_one_that_is_paused_stays_so(caller: Caller, engine: Engine) -> None:
    made = await filled(caller, engine)
    backup = await backed_up(caller, made)
    async with session(made) as tenant:
        await tenant.execute("DELETE FROM visits")
    await fetch(
        "UPDATE databases SET paused_reason = 'operator', status = 'paused' WHERE uuid = $1", UUID(made["uuid"])
    )
    answer = await waited(caller, await _restore(caller, made, backup), "/databases", status=200)
    assert answer["operation"]["status"] == "succeeded"
    assert (await full(caller, made["uuid"]))["status"] == "paused"


async def test_a_second_one_and_a_deletion(service: RunningService, caller: Caller, engine: Engine) -> None:
    made = await filled(caller, engine)
    backup = await backed_up(caller, made)
    async with service.frozen("worker"):
        first = body_of(await _restore(caller, made, backup, wait=False), 202)
        second = error_of(await _restore(caller, made, backup, wait=False), 409, "restoration_in_progress")
    assert second["details"]["operation_uuid"] == first["operation"]["uuid"]
    deleted = await caller.delete(f"/databases/{made['uuid']}")
    operation = await ended(caller, first["operation"]["uuid"])
    if deleted.status_code == 409:  # the exchange had begun
        assert operation["status"] == "succeeded"
    else:
        assert operation["status"] in ("cancelled", "succeeded")


async def test_cancelled_before_anything_is_touched(
    service: RunningService, caller: Caller, adapters: Adapters, engine: Engine
) -> None:
    made = await filled(caller, engine)
    backup = await backed_up(caller, made)
    async with session(made) as tenant:
        await tenant.execute("INSERT INTO visits VALUES (100, 'later')")
    async with service.frozen("worker"):
        asked = body_of(await _restore(caller, made, backup, wait=False), 202)
        data_of(await caller.post(f"/operations/{asked['operation']['uuid']}/cancellations", None))
    assert (await ended(caller, asked["operation"]["uuid"]))["status"] == "cancelled"
    await until(lambda: _is_active(caller, made))
    assert await visits(made) == 4
    await _nothing_is_left(made, adapters)


async def _restore(caller: Caller, made: dict[str, Any], backup: dict[str, Any], *, wait: bool = True) -> Any:
    path = f"/databases/{made['uuid']}/restorations"
    return await caller.post(path, {"backup_uuid": backup["uuid"]}, params=WAIT if wait else {})


async def _is_active(caller: Caller, made: dict[str, Any]) -> bool:
    return bool((await full(caller, made["uuid"]))["status"] == "active")


async def _nothing_is_left(made: dict[str, Any], adapters: Adapters) -> None:
    """Of the copy by which the backup was proven."""
    record = await records.find(UUID(made["uuid"]))
    assert record is not None
    rows = await fetch(
        "SELECT c.uuid, c.engine_name FROM restorations r JOIN databases c ON c.id = r.scratch_id"
        " WHERE r.database_id = $1",
        record.id,
    )
    adapter = await adapters.of_host(record.host_id)
    for row in rows:
        await until(lambda row=row: _is_destroyed(row["uuid"]))  # type: ignore[misc]
        assert row["engine_name"] not in {one.name for one in await adapter.list_tenants()}


async def _is_destroyed(uuid: UUID) -> bool:
    record = await records.find(uuid)
    return record is not None and record.destroyed_at is not None
