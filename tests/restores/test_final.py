"""Nothing of a deleted database is destroyed before there is a backup of it, where its policy is on."""

from uuid import UUID

import pytest

from activities.engine import EngineActivitiesOnHosts
from app.backups import final
from app.contracts.backups import FINAL_BACKUP_FAILED, FINAL_BACKUP_PENDING
from app.contracts.base import Engine
from app.hosts.adapters import Adapters
from app.hosts.slots import HostSlots
from app.operations.reasons import ReasonCode
from app.outbox.provisionings import RunningProvisionings
from app.quotas.plans import DEFAULT_PLANS
from app.store.session import fetch
from tests.restores.conftest import ENGINES
from tests.restores.support import filled, refusal, session, visits
from tests.support.answers import data_of
from tests.support.client import Caller
from tests.support.service import RunningService
from tests.support.waiting import until

_GRACE_OVER = "UPDATE databases SET destroy_at = now() WHERE uuid = $1"


@pytest.mark.parametrize("engine", ENGINES)
async def test_it_is_taken_after_access_has_ended_and_before_the_data_goes(
    caller: Caller, steps: EngineActivitiesOnHosts, engine: Engine
) -> None:
    made = await filled(caller, engine)
    database = UUID(made["uuid"])
    data_of(await caller.delete(f"/databases/{database}"))
    assert await refusal(steps, database) == FINAL_BACKUP_PENDING
    backup = await until(lambda: _final(database, "completed"))
    await fetch(_GRACE_OVER, database)
    await steps.destroy_database(database)
    again = await caller.created("was", source={"backup_uuid": str(backup)})
    assert await visits(again) == 3


async def test_the_list_of_deleted_ones_names_it_and_an_undeletion_keeps_it(
    caller: Caller, steps: EngineActivitiesOnHosts
) -> None:
    made = await filled(caller, Engine.POSTGRES)
    database = UUID(made["uuid"])
    data_of(await caller.delete(f"/databases/{database}"))
    assert _listed(await caller.get("/deleted_databases"), database) is None
    for _ in range(2):
        await steps.revoke_access(database)
    backup = await until(lambda: _final(database, "completed"))
    assert len(await fetch("SELECT 1 FROM backups WHERE database_uuid = $1", database)) == 1
    assert _listed(await caller.get("/deleted_databases"), database) == str(backup)
    data_of(await caller.post(f"/databases/{database}/undeletions", None))
    assert data_of(await caller.get(f"/backups/{backup}"))["status"] == "completed"
    # A later deletion has another one: the tenant has worked since.
    data_of(await caller.delete(f"/databases/{database}"))
    assert _listed(await caller.get("/deleted_databases"), database) is None


async def test_one_that_failed_is_asked_for_again_and_an_operator_waives_it(
    caller: Caller, steps: EngineActivitiesOnHosts
) -> None:
    made = await filled(caller, Engine.POSTGRES)
    database = UUID(made["uuid"])
    data_of(await caller.delete(f"/databases/{database}"))
    assert await refusal(steps, database) == FINAL_BACKUP_PENDING
    await fetch(
        "UPDATE backups SET status = 'failed', changed_at = now() - interval '1 minute' WHERE database_uuid = $1",
        database,
    )
    assert await refusal(steps, database) == FINAL_BACKUP_FAILED
    assert len(await fetch("SELECT 1 FROM backups WHERE database_uuid = $1", database)) == 2
    await final.waive(database)
    await fetch(_GRACE_OVER, database)
    await steps.destroy_database(database)


async def test_none_is_taken_where_the_policy_is_off(caller: Caller, steps: EngineActivitiesOnHosts) -> None:
    made = await filled(caller, Engine.POSTGRES)
    database = UUID(made["uuid"])
    data_of(await caller.patch(f"/databases/{database}/backup_policy", {"enabled": False}))
    data_of(await caller.delete(f"/databases/{database}"))
    await steps.revoke_access(database)
    await fetch(_GRACE_OVER, database)
    await steps.destroy_database(database)
    assert not await fetch("SELECT 1 FROM backups WHERE database_uuid = $1", database)


async def _final(database: UUID, status: str) -> UUID | None:
    rows = await fetch(
        "SELECT uuid FROM backups WHERE database_uuid = $1 AND kind = 'final' AND status = $2", database, status
    )
    return rows[0]["uuid"] if rows else None


def _listed(answer: object, database: UUID) -> str | None:
    rows = {one["uuid"]: one for one in data_of(answer)}  # type: ignore[arg-type]
    backup: str | None = rows[str(database)]["final_backup_uuid"]
    return backup


async def test_none_is_waited_for_once_the_destruction_has_begun(
    caller: Caller, adapters: Adapters, service: RunningService, steps: EngineActivitiesOnHosts
) -> None:
    """The process died when the data was gone and nothing said so yet; final backups were turned on before the next."""
    made = await filled(caller, Engine.POSTGRES)
    database = UUID(made["uuid"])
    data_of(await caller.delete(f"/databases/{database}"))
    await fetch(_GRACE_OVER, database)
    without = EngineActivitiesOnHosts(DEFAULT_PLANS, service.box, adapters, HostSlots(), RunningProvisionings())
    await without.destroy_database(database)
    await steps.destroy_database(database)
    assert not await fetch("SELECT 1 FROM backups WHERE database_uuid = $1", database)


@pytest.mark.parametrize("engine", ENGINES[1:])
async def test_who_drops_the_database_itself_keeps_nothing_from_ending(
    caller: Caller, steps: EngineActivitiesOnHosts, engine: Engine
) -> None:
    made = await filled(caller, engine)
    database = UUID(made["uuid"])
    async with session(made) as tenant:
        await tenant.execute(f"DROP DATABASE `{made['db_name']}`")
    data_of(await caller.delete(f"/databases/{database}"))
    await steps.revoke_access(database)
    backup = await until(lambda: _final(database, "cancelled"))
    seen = data_of(await caller.get(f"/backups/{backup}"))
    assert seen["error"] == ReasonCode.DATABASE_DROPPED.message
    await fetch(_GRACE_OVER, database)
    await steps.destroy_database(database)
