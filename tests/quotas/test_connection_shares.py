"""Who gets how many of a host's connections when they are short."""

from random import Random

from app.quotas.connection_shares import Sharer, allotments, floor_of
from tests.support.together import together


def asking(id: int, sessions: int, *, team: int = 1, limit: int = 100, at_most: int | None = None) -> Sharer:
    return Sharer(id=id, team_id=team, limit=limit, floor=floor_of(limit, 10), sessions=sessions, at_most=at_most)


def test_nobody_is_held_while_all_fits() -> None:
    assert allotments([asking(1, 50), asking(2, 30)], 80) == {}


def test_those_that_use_most_get_less() -> None:
    assert allotments([asking(1, 70, team=1), asking(2, 20, team=2), asking(3, 5, team=3)], 80) == {1: 55}


def test_many_databases_are_one_teams_share() -> None:
    many = [asking(number, 10, team=1) for number in range(1, 10)]
    found = allotments([*many, asking(99, 60, team=2)], 100)
    # None is held below its floor; the other team has as much as all of them together.
    assert set(found) == {99}
    assert found[99] == 10
    found = allotments([*[asking(number, 20, team=1) for number in range(1, 10)], asking(99, 60, team=2)], 160)
    assert found[99] == 10 + 30
    assert sum(found[number] for number in range(1, 10)) == 90 + 30


def test_the_floor_is_kept_whatever_others_have() -> None:
    assert floor_of(100, 10) == 10
    assert floor_of(5, 10) == 1
    assert allotments([asking(1, 100, team=1), asking(2, 10, team=2)], 5) == {1: 10}


def test_one_that_presses_gets_what_others_leave() -> None:
    pressing = asking(1, 20, at_most=20)
    assert allotments([pressing, asking(2, 10, team=2)], 80) == {1: 70}
    # One that doesn't use all that it gets keeps that.
    assert allotments([asking(1, 15, at_most=20), asking(2, 10, team=2)], 80) == {1: 20}
    # Little more or less is no change.
    assert allotments([asking(1, 40, at_most=40), asking(2, 36, team=2)], 80) == {1: 40}


@together("seed", range(20))
def test_all_together_have_what_there_is(seed: int) -> None:
    random = Random(seed)
    databases = [
        asking(number, random.randrange(0, 100), team=random.randrange(5), at_most=random.choice([None, 20]))
        for number in range(30)
    ]
    available = random.randrange(300, 1500)
    found = allotments(databases, available)
    got = sum(min(one.wants, found.get(one.id, one.wants)) for one in databases)
    nearly = sum(2 for one in databases if one.at_most is not None)
    assert got <= max(available, sum(one.kept for one in databases)) + nearly
    for one in databases:
        assert found.get(one.id, one.wants) >= min(one.floor, one.wants)
