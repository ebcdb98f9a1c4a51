"""What a pool lacks and what is too much, for pools of every kind."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from app.contracts.base import DatabaseStatus
from app.databases.pool.decision import Decision, decide
from app.databases.pooled import PoolMember

NOW = datetime(2026, 1, 8, tzinfo=UTC)
WEEK_AGO = NOW - timedelta(days=7)
CONNECTIONS = 10

MEMBERS = st.lists(
    st.builds(
        PoolMember,
        uuid=st.builds(uuid4),
        status=st.sampled_from((DatabaseStatus.PROVISIONING, DatabaseStatus.ACTIVE)),
        connections=st.sampled_from((5, CONNECTIONS)),
        provisioned_at=st.datetimes(datetime(2025, 12, 1), datetime(2026, 1, 8), timezones=st.just(UTC)),
        draining=st.booleans(),
        sick=st.booleans(),
    ),
    max_size=12,
)


def decided(members: list[PoolMember], size: int) -> Decision:
    return decide(members, size, CONNECTIONS, WEEK_AGO)


def usable(members: list[PoolMember]) -> list[PoolMember]:
    return [one for one in members if one.status is DatabaseStatus.ACTIVE and not one.draining and not one.sick]


@given(MEMBERS, st.integers(0, 8))
def test_a_pool_is_filled_to_its_size_and_never_over_it(members: list[PoolMember], size: int) -> None:
    decision = decided(members, size)
    fresh = [one for one in usable(members) if one not in decision.aged]
    assert decision.missing + decision.making + len(fresh) >= size
    assert decision.missing == 0 or decision.missing + decision.making + len(fresh) == size


@given(MEMBERS, st.integers(0, 8))
def test_what_goes_leaves_the_size_behind(members: list[PoolMember], size: int) -> None:
    decision = decided(members, size)
    gone = {one.uuid for one in decision.discard}
    assert len(gone) == len(decision.discard)
    left = [one for one in usable(members) if one.uuid not in gone]
    assert len(left) == min(size, len(usable(members)))
    for one in members:
        if one.status is DatabaseStatus.ACTIVE and one.draining:
            assert one.uuid in gone
        elif one.status is DatabaseStatus.PROVISIONING or one.sick:
            assert one.uuid not in gone


@given(MEMBERS, st.integers(0, 8))
def test_the_old_go_before_the_young(members: list[PoolMember], size: int) -> None:
    decision = decided(members, size)
    if any(one not in decision.aged and not one.draining for one in decision.discard):
        assert {one.uuid for one in decision.aged} <= {one.uuid for one in decision.discard}
