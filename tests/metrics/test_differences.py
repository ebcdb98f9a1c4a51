"""Differences of counters: exact where they can be told, and none where they can't."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.engines.base import Counters
from app.engines.tenants import counted
from app.usage.metrics.differences import COUNTS, MOST, NOTHING_KNOWN, Counts, Look, add, between
from app.usage.metrics.rollups import begin_of
from tests.support.together import together

_numbers = st.none() | st.integers(0, MOST)
_counts = st.builds(Counts, **dict.fromkeys(COUNTS, _numbers))
_began = st.sampled_from(["a", "b"])
_witness = st.lists(st.integers(0, 9), max_size=2).map(tuple)
_looks = st.builds(
    Look,
    place=st.sampled_from(["1 t1", "2 t1"]),
    counters=st.builds(
        Counters, began=_began, witness=_witness, **{name: st.none() | st.integers(0, 99) for name in COUNTS}
    ),
)


def look(place: str = "1 t1", **counters: Any) -> Look:
    return Look(place=place, counters=Counters(**({"began": "a"} | counters)))


@given(_looks, _looks)
def test_a_difference_is_never_negative_and_never_of_two_beginnings(before: Look, after: Look) -> None:
    grown = between(before, after)
    old, new = before.counters, after.counters
    less = any(now < then for then, now in zip(old.witness, new.witness, strict=False)) or any(
        getattr(new, name) < getattr(old, name)
        for name in COUNTS
        if getattr(new, name) is not None and getattr(old, name) is not None
    )
    same = before.place == after.place and old.began == new.began and len(old.witness) == len(new.witness)
    assert (grown is None) == (less or not same)
    for name in COUNTS if grown is not None else ():
        then, now = getattr(old, name), getattr(new, name)
        assert getattr(grown, name) == (None if then is None or now is None else now - then)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=20))
def test_differences_of_one_beginning_add_up(steps: list[int]) -> None:
    """However a time is cut, the sum is what the counter grew by."""
    values = [sum(steps[:number]) for number in range(len(steps) + 1)]
    looks = [look(transactions=value) for value in values]
    total = NOTHING_KNOWN
    for before, after in pairwise(looks):
        grown = between(before, after)
        assert grown is not None
        total = add(total, grown)
    assert total == between(looks[0], looks[-1]) == Counts(transactions=sum(steps))


@given(_counts, _counts, _counts)
def test_sums_do_not_depend_on_the_order(one: Counts, two: Counts, three: Counts) -> None:
    assert add(one, two) == add(two, one)
    assert add(add(one, two), three) == add(one, add(two, three))
    assert add(one, NOTHING_KNOWN) == one


@together(
    "after",
    [
        {"began": "b", "transactions": 20},
        {"place": "2 t1", "transactions": 20},
        {"place": "1 t2", "transactions": 20},
        {"transactions": 9},
        {"transactions": 20, "rows_read": 4},
        {"transactions": 20, "witness": (6,)},
        {"transactions": 20, "witness": (7, 1)},
        {"transactions": 10 + MOST + 1},
    ],
)
def test_what_cannot_be_compared(after: dict[str, Any]) -> None:
    before = look(transactions=10, rows_read=5, witness=(7,))
    assert between(before, look(**({"witness": (7,)} | after))) is None
    assert between(before, look(transactions=10, rows_read=5, witness=(7,))) == Counts(transactions=0, rows_read=0)


@together("told", [-1, 2**62, 10**40, "x", "", None, 1.5, "1e3", b"1"])
def test_a_counter_that_cannot_be_is_none(told: object) -> None:
    assert counted(told) is None


@given(
    st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
    st.sampled_from([60, 300, 900, 3600, 21_600, 86_400]),
)
def test_every_moment_has_one_step(moment: datetime, seconds: int) -> None:
    begin = begin_of(moment, seconds)
    assert begin <= moment < begin + timedelta(seconds=seconds)
    assert begin == begin_of(begin, seconds)
    assert begin.timestamp() % seconds == 0
