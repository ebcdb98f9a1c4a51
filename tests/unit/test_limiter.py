"""The limiter: its bounds, the order in which it serves, and that it loses no slot whatever is cancelled when."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.limiter import Limiter, LimitReached

A, B, C = "a", "b", "c"


class Crowd:
    """Tasks that each want a slot and keep it until they are let go."""

    def __init__(self, limiter: Limiter[str]) -> None:
        self.limiter = limiter
        self.inside: list[str] = []
        """Names, in the order in which they got their slots; those that have left are gone."""
        self.entered: list[str] = []
        self.refused: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.may_leave: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def come(self, *names: str, timeout: float | None = None) -> None:
        """A name begins with its key."""
        for name in names:
            self.tasks[name] = asyncio.create_task(self.hold(name, timeout))
            await settle()

    async def leave(self, *names: str) -> None:
        for name in names:
            self.may_leave[name].set()
        await settle()

    async def cancel(self, *names: str) -> None:
        for name in names:
            self.tasks[name].cancel()
        await settle()

    async def end(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        for outcome in await asyncio.gather(*self.tasks.values(), return_exceptions=True):
            assert outcome is None or isinstance(outcome, asyncio.CancelledError), outcome

    async def hold(self, name: str, timeout: float | None) -> None:
        try:
            async with self.limiter.slot(name[0], timeout=timeout):
                self.entered.append(name)
                self.inside.append(name)
                try:
                    await self.may_leave[name].wait()
                finally:
                    self.inside.remove(name)
        except LimitReached:
            self.refused.append(name)


async def settle(turns: int = 10) -> None:
    """Every task that can go on has gone on as far as it can: none of them waits for anything but another."""
    for _ in range(turns):
        await asyncio.sleep(0)


@asynccontextmanager
async def crowd(per_key: int, total: int | None = None) -> AsyncIterator[Crowd]:
    """At the end nothing may be left behind."""
    limiter = Limiter[str](per_key, total)
    people = Crowd(limiter)
    try:
        yield people
    finally:
        await people.end()
    assert len(limiter) == 0
    assert all(limiter.has_room(key) and limiter.held(key) == 0 for key in (A, B, C))


async def test_each_key_has_its_bound() -> None:
    async with crowd(2) as people:
        await people.come("a1", "a2", "a3", "b1")
        assert people.inside == ["a1", "a2", "b1"]
        assert (people.limiter.held(A), people.limiter.held(B)) == (2, 1)
        assert not people.limiter.has_room(A)
        assert people.limiter.has_room(B)


async def test_all_keys_have_one_together() -> None:
    async with crowd(2, total=3) as people:
        await people.come("a1", "a2", "b1", "c1")
        assert people.inside == ["a1", "a2", "b1"]
        assert not people.limiter.has_room(C)
        await people.leave("a1")
        assert people.inside == ["a2", "b1", "c1"]


async def test_who_came_first_is_served_first() -> None:
    async with crowd(1) as people:
        await people.come("a1", "a2", "a3", "a4")
        for number in range(1, 5):
            assert people.inside == [f"a{number}"]
            await people.leave(f"a{number}")


async def test_keys_take_turns_whatever_the_length_of_their_queues() -> None:
    async with crowd(3, total=1) as people:
        await people.come("a1", "a2", "a3", "a4", "b1", "b2", "c1")
        for name in ("a1", "a2", "b1", "c1", "a3", "b2"):
            assert len(people.inside) == 1
            await people.leave(name)
        assert people.entered == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]


async def test_a_key_at_its_bound_holds_up_no_other() -> None:
    async with crowd(1, total=3) as people:
        await people.come("a1", "a2", "a3", "b1", "c1")
        assert people.inside == ["a1", "b1", "c1"]


async def test_a_released_slot_belongs_to_who_waits_before_that_one_has_run_again() -> None:
    async with crowd(1) as people:
        with people.limiter.slot_now(A):
            await people.come("a1")
        with pytest.raises(LimitReached), people.limiter.slot_now(A):
            pass
        await people.come("a2")
        assert people.inside == ["a1"]


async def test_who_does_not_wait_is_refused_where_there_is_no_room() -> None:
    limiter = Limiter[str](1, total=2)
    with limiter.slot_now(A):
        with pytest.raises(LimitReached), limiter.slot_now(A):
            pass
        with limiter.slot_now(B), pytest.raises(LimitReached), limiter.slot_now(C):
            pass
        with limiter.slot_now(C):
            pass
    assert len(limiter) == 0


async def test_patience_ends() -> None:
    async with crowd(1) as people:
        await people.come("a1")
        await people.come("a2", timeout=0.01)
        await people.tasks["a2"]
        assert people.refused == ["a2"]
        await people.leave("a1")
        await people.come("a3", timeout=0)
        assert people.inside == ["a3"]


async def test_an_error_within_the_block_is_the_callers_and_gives_the_slot_back() -> None:
    limiter = Limiter[str](1)
    for error in (ValueError("mine"), TimeoutError("mine"), LimitReached("mine")):
        with pytest.raises(type(error), match="mine"):
            async with limiter.slot(A, timeout=5):
                raise error
        with pytest.raises(type(error), match="mine"), limiter.slot_now(A):
            raise error
    assert len(limiter) == 0


async def test_cancelled_while_waiting() -> None:
    async with crowd(1) as people:
        await people.come("a1", "a2", "a3")
        await people.cancel("a2")
        await people.leave("a1")
        assert people.inside == ["a3"]


async def test_cancelled_within_the_block() -> None:
    async with crowd(1) as people:
        await people.come("a1", "a2")
        await people.cancel("a1")
        assert people.inside == ["a2"]


async def test_cancelled_in_the_moment_in_which_the_slot_was_handed_over() -> None:
    async with crowd(1) as people:
        with people.limiter.slot_now(A):
            await people.come("a1", "a2")
        assert people.limiter.held(A) == 1
        assert people.inside == []
        await people.cancel("a1")
        assert people.entered == ["a2"]


async def test_its_time_is_over_in_the_moment_in_which_the_slot_was_handed_over() -> None:
    async with crowd(1) as people:
        taken = ExitStack()
        taken.enter_context(people.limiter.slot_now(A))
        for name, timeout in (("a1", 0), ("a2", None)):
            people.tasks[name] = asyncio.create_task(people.hold(name, timeout))
        # After both have begun to wait, and before a time limit of 0 ends: that takes one more turn of the loop.
        asyncio.get_running_loop().call_soon(taken.close)
        await settle()
        assert (people.refused, people.entered) == (["a1"], ["a2"])


async def test_the_slot_is_released_in_the_moment_in_which_who_waits_was_cancelled() -> None:
    async with crowd(1) as people:
        with people.limiter.slot_now(A):
            await people.come("a1", "a2")
            people.tasks["a1"].cancel()
        await settle()
        assert people.entered == ["a2"]


async def test_all_that_wait_are_cancelled_together() -> None:
    async with crowd(2, total=2) as people:
        names = [f"{key}{number}" for key in (A, B, C) for number in range(5)]
        await people.come(*names)
        await people.cancel(*names[2:])
        assert people.inside == ["a0", "a1"]
        assert len(people.limiter) == 1


async def test_how_long_the_oldest_has_been_held() -> None:
    limiter = Limiter[str](2)
    assert limiter.longest_held(A) == 0
    with limiter.slot_now(A):
        first = limiter.longest_held(A)
        with limiter.slot_now(A):
            assert limiter.longest_held(A) >= first > 0
    assert limiter.longest_held(A) == 0


_Step = tuple[str, str, int]
_steps = st.lists(
    st.tuples(
        st.sampled_from(["come", "come", "come", "leave", "cancel"]), st.sampled_from([A, B, C]), st.integers(0, 9)
    ),
    min_size=5,
    max_size=40,
)


@given(per_key=st.integers(1, 3), total=st.none() | st.integers(1, 5), steps=_steps, pauses=st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_happens_in_whatever_order(
    per_key: int, total: int | None, steps: list[_Step], pauses: st.DataObject
) -> None:
    """The loop runs on between two steps for as little as hypothesis likes: so a cancellation meets every await."""

    async def live() -> None:
        async with crowd(per_key, total) as people:
            for number, (step, key, chosen) in enumerate(steps):
                if step == "come":
                    name = f"{key}{number}"
                    people.tasks[name] = asyncio.create_task(people.hold(name, None))
                elif names := [name for name in people.tasks if name[0] == key]:
                    act = _leave if step == "leave" else _cancel
                    act(people, names[chosen % len(names)])
                for _ in range(pauses.draw(st.integers(0, 3))):
                    await asyncio.sleep(0)
                within_bounds(people, per_key, total)
            await settle(500)
            within_bounds(people, per_key, total)
            nobody_waits_in_vain(people)
            served_in_order(people)

    asyncio.run(live())


def _leave(people: Crowd, name: str) -> None:
    people.may_leave[name].set()


def _cancel(people: Crowd, name: str) -> None:
    people.tasks[name].cancel()


def within_bounds(people: Crowd, per_key: int, total: int | None) -> None:
    inside = Counter(name[0] for name in people.inside)
    assert all(count <= per_key for count in inside.values())
    assert total is None or inside.total() <= total


def nobody_waits_in_vain(people: Crowd) -> None:
    assert all(people.limiter.held(key) == sum(name[0] == key for name in people.inside) for key in (A, B, C))
    waiting = {name for name, task in people.tasks.items() if not task.done()} - set(people.inside)
    assert not any(people.limiter.has_room(name[0]) for name in waiting)


def served_in_order(people: Crowd) -> None:
    arrived: Callable[[str], int] = list(people.tasks).index
    for key in (A, B, C):
        of_key = [name for name in people.entered if name[0] == key]
        assert of_key == sorted(of_key, key=arrived)
