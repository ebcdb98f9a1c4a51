"""What one run repairs, where there is more than it may."""

from app.upkeep.reconcile.repairs import MAX_REPAIRS, chosen
from tests.support.waiting import until


async def test_none_waits_for_ever_behind_those_that_fail() -> None:
    due, had_their_turn = range(5 * MAX_REPAIRS), set[int]()

    def all_of_them() -> bool:
        turn = chosen(due)
        assert len(set(turn)) == MAX_REPAIRS
        had_their_turn.update(turn)
        return had_their_turn == set(due)

    await until(all_of_them)
    assert sorted(chosen(range(3))) == [0, 1, 2]
