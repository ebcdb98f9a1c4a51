"""Slots on the engine hosts: a bound for each, and no patience with one that answers nobody."""

import asyncio
import contextlib
from time import monotonic

import pytest

from app.engines.base import EngineError, HostUnavailable
from app.hosts.slots import TEAM_SLOTS, HostSlots, SlotsTaken
from tests.support.waiting import LIMIT_SECONDS, until

HUNG, WELL = 1, 2


async def hold(slots: HostSlots, host_id: int, until: asyncio.Event, peak: list[int] | None = None) -> None:
    async with slots.slot(host_id):
        if peak is not None:
            peak[0] += 1
            peak[1] = max(peak)
        await until.wait()
        if peak is not None:
            peak[0] -= 1


async def hang(slots: HostSlots, count: int) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(hold(slots, HUNG, asyncio.Event())) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def at_once(slots: HostSlots, host_id: int) -> None:
    """Takes a slot and gives it back; fails where it would have to wait."""
    slot = slots.slot(host_id)
    with pytest.raises(StopIteration):
        slot.__aenter__().__await__().send(None)
    await slot.__aexit__(None, None, None)


async def test_so_many_at_once_and_no_more() -> None:
    slots, go, peak = HostSlots(per_host=3), asyncio.Event(), [0, 0]
    tasks = [asyncio.create_task(hold(slots, WELL, go, peak)) for _ in range(10)]
    for _ in tasks:
        await asyncio.sleep(0)  # each comes as far as it can
    assert peak == [3, 3]
    go.set()
    await asyncio.gather(*tasks)
    assert peak == [0, 3]


async def test_a_host_that_answers_nobody_is_left_by_those_who_wait_and_shunned_by_those_who_come() -> None:
    slots = HostSlots(per_host=2, patience=0.2)
    hanging = await hang(slots, 2)
    waiting = [asyncio.create_task(hold(slots, HUNG, asyncio.Event())) for _ in range(5)]
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(outcome, HostUnavailable) for outcome in outcomes)
    with pytest.raises(HostUnavailable, match="2 steps are at work on it"):
        await at_once(slots, HUNG)
    await at_once(slots, WELL)
    await end(hanging)
    await at_once(slots, HUNG)


@pytest.mark.parametrize(("failure", "patient"), [(EngineError("no"), True), (HostUnavailable("silence"), False)])
async def test_an_error_of_the_engine_is_an_answer_and_silence_is_none(failure: Exception, patient: bool) -> None:
    patience = 1.0
    slots = HostSlots(per_host=2, patience=patience)
    (hanging,) = await hang(slots, 1)

    began = monotonic()

    async def has_failed_for_longer() -> bool:
        with contextlib.suppress(EngineError):
            async with slots.slot(HUNG):
                raise failure
        return monotonic() > began + patience

    await until(has_failed_for_longer)
    others = await hang(slots, 1)
    waiting = asyncio.create_task(hold(slots, HUNG, asyncio.Event()))
    for _ in range(3):
        await asyncio.sleep(0)  # it waits, or is refused
    assert waiting.done() is not patient
    await end([hanging, *others, waiting])


async def test_a_team_has_half_of_a_host_and_the_others_get_in_at_once() -> None:
    slots = HostSlots(patience=0.2)
    async with contextlib.AsyncExitStack() as held:
        for _ in range(TEAM_SLOTS):
            await held.enter_async_context(slots.team_slot(WELL, 1))
        with pytest.raises(SlotsTaken, match="of the team"):
            async with slots.team_slot(WELL, 1):
                pass
        async with slots.team_slot(WELL, 2), slots.team_slot(WELL, None), slots.team_slot(HUNG, 1), slots.slot(WELL):
            pass
    async with slots.team_slot(WELL, 1):
        pass


async def test_removals_have_few_slots_of_a_host_and_each_team_fewer() -> None:
    slots = HostSlots(patience=0.2)
    async with slots.removal_slot(WELL, 1):
        with pytest.raises(SlotsTaken, match="of the team"):
            async with slots.removal_slot(WELL, 1):
                pass
        async with slots.removal_slot(WELL, 2):
            with pytest.raises(SlotsTaken):
                async with slots.removal_slot(WELL, 3):
                    pass
            async with slots.removal_slot(HUNG, 1), slots.team_slot(WELL, 1):
                pass
        async with slots.removal_slot(WELL, 3):
            pass
    assert not slots.is_busy(WELL)


async def test_who_finds_the_slots_of_its_team_taken_waits_while_these_come_to_their_ends() -> None:
    slots = HostSlots(patience=LIMIT_SECONDS)
    begun = asyncio.Event()

    async def remove() -> None:
        async with slots.removal_slot(WELL, 1):
            begun.set()

    async with slots.removal_slot(WELL, 1):
        waiting = asyncio.create_task(remove())
        await asyncio.sleep(0)
        assert not begun.is_set()
    await waiting
