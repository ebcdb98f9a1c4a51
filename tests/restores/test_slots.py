"""Of the loads that a worker is at, one team has only some, and one host."""

from uuid import UUID

import pytest
from temporalio.exceptions import ApplicationError

from activities.restores import MAX_PER_TEAM, TransferSlots
from app.backups.restores import records
from app.backups.restores.records import NewRestoration
from app.contracts.base import Engine
from app.contracts.restores import SLOTS_TAKEN, RestorationKind
from app.core.ids import new_uuid
from app.store.session import transaction
from tests.operations.support import row
from tests.restores.support import filled, session, waits_for
from tests.support.answers import body_of, data_of
from tests.support.client import Caller
from tests.support.in_process import LoneApi
from tests.support.service import RunningService
from tests.support.waiting import until


async def made_by(caller: Caller) -> UUID:
    return UUID(data_of(await caller.create(), 202)["uuid"])


async def restoration(database: UUID) -> UUID:
    """Under way."""
    uuid, record = new_uuid(), await row(database)
    async with transaction():
        await records.insert(
            NewRestoration(uuid=uuid, database_id=record.id, kind=RestorationKind.CLONE, source_id=record.id)
        )
    return uuid


async def test_a_team_has_only_some_of_the_slots_and_so_has_a_host(lone: LoneApi) -> None:
    callers = [await lone.caller() for _ in range(3)]
    teams = [[await restoration(await made_by(caller)) for _ in range(2)] for caller in callers]
    slots = TransferSlots(per_team=1, per_host=2)
    async with slots.slot(teams[0][0]):
        await is_refused(slots, teams[0][1])
        async with slots.slot(teams[1][0]):
            await is_refused(slots, teams[2][0])
        async with slots.slot(teams[2][0]):
            pass
    async with slots.slot(teams[0][1]):
        pass


_SLOW = """
CREATE FUNCTION slow(number integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF current_database() <> '{name}' THEN
        PERFORM pg_sleep(600);
    END IF;
    RETURN number;
END $$;
ALTER TABLE visits ADD doubled integer GENERATED ALWAYS AS (slow(id)) STORED;
"""


async def test_who_finds_none_says_so_and_comes_when_one_is_free(service: RunningService) -> None:
    caller = await service.caller()
    made = await filled(caller, Engine.POSTGRES, rows=1)
    async with session(made) as tenant:
        await tenant.execute(_SLOW.format(name=made["db_name"]))
    source = {"database_uuid": made["uuid"]}
    clones = [body_of(await caller.create(f"clone-{n}", source=source), 202) for n in range(MAX_PER_TEAM + 1)]
    operations = {one["data"]["uuid"]: one["operation"]["uuid"] for one in clones}

    async def look() -> str | None:
        waiting = [one for one in operations if await waits_for(caller, operations[one], "queued")]
        return waiting[0] if waiting else None

    queued = await until(look)
    assert queued is not None
    data_of(await caller.delete(f"/databases/{next(one for one in operations if one != queued)}"))

    async def is_being_loaded() -> bool:
        seen = data_of(await caller.get(f"/operations/{operations[queued]}"))
        return bool(seen["status"] == "running")

    await until(is_being_loaded)
    for one in operations:
        await caller.delete(f"/databases/{one}")


async def is_refused(slots: TransferSlots, one: UUID) -> None:
    with pytest.raises(ApplicationError) as refused:
        async with slots.slot(one):
            pass
    assert (refused.value.type, refused.value.non_retryable) == (SLOTS_TAKEN, True)
