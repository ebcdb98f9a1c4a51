"""Work that is done once for all who ask for it within a time."""

import asyncio

from app.core import debounce
from app.core.context import Actor, ActorKind, actor, current_actor
from app.core.debounce import Debouncer
from tests.support.logs import logged_by


class _Work:
    def __init__(self, *, fails: int = 0) -> None:
        self.runs = 0
        self.fails = fails
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self.go_on.set()

    async def __call__(self) -> None:
        self.runs += 1
        self.begun.set()
        await self.go_on.wait()
        if self.runs <= self.fails:
            raise OSError("gone")


async def test_many_are_one() -> None:
    work = _Work()
    debouncer = Debouncer(3600, work, lost="lost")
    for _ in range(100):
        debouncer.schedule()
    for _ in range(100):  # turns of the loop, in which whatever is due runs
        await asyncio.sleep(0)
    assert work.runs == 0
    await debouncer.close()
    assert work.runs == 1


async def test_who_asks_while_it_is_done_is_not_forgotten() -> None:
    work = _Work()
    work.go_on.clear()
    debouncer = Debouncer(0, work, lost="lost")
    debouncer.schedule()
    await asyncio.wait_for(work.begun.wait(), 60)
    debouncer.schedule()
    work.go_on.set()
    await debouncer.close()
    assert work.runs == 2


async def test_a_failure_is_logged_and_ends_nothing() -> None:
    work = _Work(fails=1)
    debouncer = Debouncer(0, work, lost="hint_lost")
    with logged_by(debounce) as lines:
        debouncer.schedule()
        await asyncio.wait_for(work.begun.wait(), 60)
        debouncer.schedule()
        await debouncer.close()
    assert [(line["event"], line["reason"]) for line in lines] == [("hint_lost", "gone")]
    assert work.runs == 2


async def test_nobody_asked() -> None:
    work = _Work()
    await Debouncer(0, work, lost="lost").close()
    assert work.runs == 0


async def test_it_is_done_in_nobodys_name() -> None:
    """Whoever asks first is not the only one that it is for."""
    names: list[Actor | None] = []

    async def note() -> None:
        names.append(current_actor())

    token = actor.set(Actor(kind=ActorKind.KEY, user_id=1))
    try:
        debouncer = Debouncer(0, note, lost="lost")
        debouncer.schedule()
    finally:
        actor.reset(token)
    await debouncer.close()
    assert names == [None]
