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


async def test_all_loads_together_leave_slots_to_others(lone: LoneApi) -> None:
    one, other = [await restoration(await made_by(await lone.caller())) for _ in range(2)]
    slots = TransferSlots(total=1)
    async with slots.slot(one):
        await is_refused(slots, other)
    async with slots.slot(other):
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


async def slow_source(caller: Caller) -> str:
    """A database whose clones take minutes to load."""
    made = await filled(caller, Engine.POSTGRES, rows=1)
    async with session(made) as tenant:
        await tenant.execute(_SLOW.format(name=made["db_name"]))
    return str(made["uuid"])


class Clones:
    """Under way, of one team."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._operations: dict[str, str] = {}

    async def begin(self, source: str) -> str:
        answer = await self._caller.create(f"clone-{len(self._operations)}", source={"database_uuid": source})
        begun = body_of(answer, 202)
        self._operations[begun["data"]["uuid"]] = begun["operation"]["uuid"]
        return str(begun["data"]["uuid"])

    async def one_that_waits(self) -> str:
        async def look() -> str | None:
            waiting = [one for one in self._operations if await self.waits(one)]
            return waiting[0] if waiting else None

        found = await until(look)
        assert found is not None
        return found

    async def waits(self, one: str) -> bool:
        return await waits_for(self._caller, self._operations[one], "queued")

    async def is_running(self, one: str) -> bool:
        seen = data_of(await self._caller.get(f"/operations/{self._operations[one]}"))
        return bool(seen["status"] == "running")

    async def give_up(self, *ones: str) -> None:
        for one in ones:
            data_of(await self._caller.delete(f"/databases/{one}"))

    def others(self, *but: str) -> list[str]:
        return [one for one in self._operations if one not in but]


async def test_who_finds_none_says_so_and_comes_when_one_is_free(service: RunningService) -> None:
    caller = await service.caller()
    clones = Clones(caller)
    for _ in range(MAX_PER_TEAM + 1):
        await clones.begin(await slow_source(caller))
    queued = await clones.one_that_waits()
    freed = clones.others(queued)[0]
    await clones.give_up(freed)
    await until(lambda: clones.is_running(queued))
    await clones.give_up(*clones.others(freed))


async def is_refused(slots: TransferSlots, one: UUID) -> None:
    with pytest.raises(ApplicationError) as refused:
        async with slots.slot(one):
            pass
    assert (refused.value.type, refused.value.non_retryable) == (SLOTS_TAKEN, True)
