"""Slots on the engine hosts: a bound for each, and no patience with one that answers nobody."""

import asyncio
import contextlib

import pytest

from app.engines.base import EngineError, HostUnavailable
from app.hosts.slots import HostSlots

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


async def test_so_many_at_once_and_no_more() -> None:
    slots, go, peak = HostSlots(per_host=3), asyncio.Event(), [0, 0]
    tasks = [asyncio.create_task(hold(slots, WELL, go, peak)) for _ in range(10)]
    await asyncio.sleep(0.05)
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
        async with asyncio.timeout(0.1), slots.slot(HUNG):
            pass
    async with asyncio.timeout(0.1), slots.slot(WELL):
        pass
    await end(hanging)
    async with asyncio.timeout(0.1), slots.slot(HUNG):
        pass


@pytest.mark.parametrize(("failure", "patient"), [(EngineError("no"), True), (HostUnavailable("silence"), False)])
async def test_an_error_of_the_engine_is_an_answer_and_silence_is_none(failure: Exception, patient: bool) -> None:
    slots = HostSlots(per_host=2, patience=0.4)
    (hanging,) = await hang(slots, 1)
    for _ in range(6):
        with contextlib.suppress(EngineError):
            async with slots.slot(HUNG):
                await asyncio.sleep(0.1)
                raise failure
    others = await hang(slots, 1)
    waiting = asyncio.create_task(hold(slots, HUNG, asyncio.Event()))
    done, _ = await asyncio.wait({waiting}, timeout=0.15)
    assert bool(done) is not patient
    await end([hanging, *others, waiting])
