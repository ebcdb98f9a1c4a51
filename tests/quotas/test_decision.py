"""What follows from a measurement, case by case."""

from datetime import UTC, date, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.contracts.base import DatabaseStatus, PauseReason
from app.quotas.decision import GROWTH_LOOKS, HELD_UP, REBUILD_LOOKS, QuotaActions, QuotaState, decide
from tests.support.together import together

MIB = 2**20
LIMIT = 100 * MIB
NOW = datetime(2026, 11, 20, tzinfo=UTC)
CALM = QuotaState(
    status=DatabaseStatus.ACTIVE,
    paused_reason=None,
    frozen=False,
    access_settled=True,
    unsettled_since=None,
    limit_bytes=LIMIT,
    warning_pct=80,
    runtime_limit_seconds=None,
    measured_at=NOW,
    judged_at=None,
    storage_bytes=10 * MIB,
    runtime_month=date(2026, 11, 1),
    runtime_seconds=0.0,
    runtime_excused=None,
    warned=False,
    frozen_bytes=None,
    growing=0,
    rebuilding=False,
)


def with_(**changes: object) -> QuotaState:
    return msgspec.structs.replace(CALM, **changes)


def moves(verdict: QuotaActions) -> set[str]:
    made = {name for name in ("warn", "freeze", "thaw", "resume") if getattr(verdict, name)}
    return made | ({verdict.pause.value} if verdict.pause else set())


@together(
    ("standing", "expected"),
    [
        (CALM, set()),
        (with_(storage_bytes=80 * MIB - 1), set()),
        (with_(storage_bytes=80 * MIB), {"warn"}),
        (with_(storage_bytes=81 * MIB, warned=True), set()),
        (with_(storage_bytes=50 * MIB, warning_pct=50), {"warn"}),
        (with_(storage_bytes=100 * MIB - 1, warned=True), set()),
        (with_(storage_bytes=100 * MIB, warned=True), {"freeze"}),
        (with_(storage_bytes=300 * MIB), {"warn", "freeze"}),
        (with_(storage_bytes=100 * MIB, warned=True, frozen=True), set()),
        (with_(storage_bytes=90 * MIB, warned=True, frozen=True), set()),
        (with_(storage_bytes=90 * MIB - 1, warned=True, frozen=True), {"thaw"}),
        (with_(storage_bytes=120 * MIB, warned=True, status=DatabaseStatus.PAUSED), {"freeze"}),
    ],
)
def test_storage(standing: QuotaState, expected: set[str]) -> None:
    assert moves(decide(standing)) == expected


@pytest.mark.parametrize(
    ("minutes", "megabytes", "expected"), [(9, 100, set()), (10, 100, {"storage"}), (10, 95, set()), (10, 89, {"thaw"})]
)
def test_a_freeze_that_does_not_come_to_the_engine_ends_in_a_pause(
    minutes: int, megabytes: int, expected: set[str]
) -> None:
    since = NOW - timedelta(minutes=minutes)
    standing = with_(
        storage_bytes=megabytes * MIB, warned=True, frozen=True, access_settled=False, unsettled_since=since
    )
    assert moves(decide(standing)) == expected


def test_a_warning_is_given_again_only_after_the_storage_was_clearly_below() -> None:
    standing, warnings = CALM, 0
    for megabytes in (85, 79, 81, 76, 82, 74, 85, 99):
        verdict = decide(msgspec.structs.replace(standing, storage_bytes=megabytes * MIB))
        warnings += verdict.warn
        standing = msgspec.structs.replace(standing, warned=verdict.warned)
    assert warnings == 2, "at the first crossing, and after the 74"


def _look(
    standing: QuotaState, megabytes: float, minute: int, *, rebuilding: bool = False
) -> tuple[QuotaState, QuotaActions]:
    """The next measurement, with what the last one left to remember."""
    seen = msgspec.structs.replace(
        standing,
        storage_bytes=int(megabytes * MIB),
        measured_at=NOW + timedelta(minutes=minute),
        rebuilding=rebuilding,
    )
    verdict = decide(seen)
    remembered = msgspec.structs.replace(
        seen, frozen_bytes=verdict.frozen_bytes, growing=verdict.growing, judged_at=seen.measured_at
    )
    return remembered, verdict


FROZEN = with_(frozen=True, warned=True)


def test_growth_after_a_freeze_pauses_at_the_second_look() -> None:
    standing = FROZEN
    for minute, (megabytes, expected) in enumerate([(110, set()), (117.5, set()), (119, set()), (120, {"storage"})]):
        standing, verdict = _look(standing, megabytes, minute)
        assert moves(verdict) == expected, megabytes


def test_what_innodb_needs_to_remove_deleted_rows_is_no_growth() -> None:
    standing = FROZEN
    for minute, megabytes in enumerate([110, 114, 114, 114]):
        standing, verdict = _look(standing, megabytes, minute)
        assert moves(verdict) == set()


def test_a_table_that_is_rebuilt_is_no_growth() -> None:
    standing = FROZEN
    for minute, megabytes in enumerate([110, 160, 109, 158, 104, 102]):
        standing, verdict = _look(standing, megabytes, minute)
        assert moves(verdict) == set()


def test_a_rebuild_may_take_long() -> None:
    standing, _ = _look(FROZEN, 110, 0)
    for minute in range(1, REBUILD_LOOKS):
        standing, verdict = _look(standing, 200, minute, rebuilding=True)
        assert moves(verdict) == set()
    standing, verdict = _look(standing, 60, REBUILD_LOOKS)
    assert moves(verdict) == {"thaw"}


def test_a_rebuild_hides_no_growth_beyond_its_end() -> None:
    standing, _ = _look(FROZEN, 110, 0)
    for minute in range(1, 5):
        standing, verdict = _look(standing, 200, minute, rebuilding=True)
    _, verdict = _look(standing, 120, 5)
    assert moves(verdict) == {"storage"}


def test_a_rebuild_without_an_end_is_growth() -> None:
    standing, _ = _look(FROZEN, 110, 0)
    for minute in range(1, REBUILD_LOOKS + 1):
        standing, verdict = _look(standing, 200, minute, rebuilding=True)
    assert moves(verdict) == {"storage"}


def test_growth_counts_from_the_least_that_was_measured() -> None:
    standing = FROZEN
    for minute, megabytes in enumerate([120, 101, 110, 110]):
        standing, verdict = _look(standing, megabytes, minute)
    assert moves(verdict) == {"storage"}


def test_what_was_measured_before_the_freeze_took_hold_is_no_growth() -> None:
    standing = msgspec.structs.replace(FROZEN, access_settled=False)
    for minute, megabytes in enumerate([101, 120, 140]):
        standing, verdict = _look(standing, megabytes, minute)
        assert verdict.frozen_bytes is None
    standing = msgspec.structs.replace(standing, access_settled=True)
    for minute, megabytes in enumerate([141, 141, 141]):
        standing, verdict = _look(standing, megabytes, 10 + minute)
        assert moves(verdict) == set()


def test_one_measurement_judged_twice_counts_once() -> None:
    standing, _ = _look(FROZEN, 110, 1)
    standing, first = _look(standing, 120, 2)
    again = decide(standing)
    assert (first.growing, again.growing, again.pause) == (1, 1, None)
    assert GROWTH_LOOKS == 2


HOURS = {"runtime_limit_seconds": 360_000.0}
RUNTIME = {"status": DatabaseStatus.PAUSED, "paused_reason": PauseReason.RUNTIME}


@together(
    ("standing", "expected"),
    [
        (with_(**HOURS, runtime_seconds=359_999.0), set()),
        (with_(**HOURS, runtime_seconds=360_000.0), {"runtime"}),
        (with_(runtime_seconds=1e9), set()),
        (with_(**HOURS, runtime_seconds=1e9, runtime_excused=date(2026, 11, 1)), set()),
        (with_(**HOURS, runtime_seconds=1e9, runtime_excused=date(2026, 10, 1)), {"runtime"}),
        (with_(**HOURS, **RUNTIME, runtime_seconds=360_000.0), set()),
        (with_(**HOURS, **RUNTIME, runtime_seconds=0.0, runtime_month=date(2026, 12, 1)), {"resume"}),
        (with_(**RUNTIME, runtime_seconds=360_000.0), {"resume"}),
        (with_(runtime_limit_seconds=720_000.0, **RUNTIME, runtime_seconds=360_000.0), {"resume"}),
        (with_(status=DatabaseStatus.PAUSED, paused_reason=PauseReason.OPERATOR), set()),
        (with_(status=DatabaseStatus.PAUSED, paused_reason=PauseReason.OPERATOR, frozen=True), {"thaw"}),
        (with_(status=DatabaseStatus.PAUSED), set()),
    ],
)
def test_runtime_and_operators(standing: QuotaState, expected: set[str]) -> None:
    assert moves(decide(standing)) == expected


STORAGE = {"status": DatabaseStatus.PAUSED, "paused_reason": PauseReason.STORAGE, "frozen": True, "warned": True}


def test_what_storage_paused_comes_back_when_there_is_room() -> None:
    assert moves(decide(with_(**STORAGE, storage_bytes=95 * MIB))) == set()
    assert moves(decide(with_(**STORAGE, storage_bytes=95 * MIB, limit_bytes=200 * MIB))) == {"thaw", "resume"}


@given(
    standing=st.builds(
        QuotaState,
        status=st.sampled_from([DatabaseStatus.ACTIVE, DatabaseStatus.PAUSED]),
        paused_reason=st.sampled_from([None, *PauseReason]),
        frozen=st.booleans(),
        access_settled=st.booleans(),
        unsettled_since=st.sampled_from([None, NOW - 2 * HELD_UP, NOW]),
        limit_bytes=st.floats(1, 1e12),
        warning_pct=st.integers(1, 100),
        runtime_limit_seconds=st.none() | st.floats(0, 1e7),
        measured_at=st.just(NOW),
        judged_at=st.sampled_from([None, NOW]),
        storage_bytes=st.integers(0, 10**12),
        runtime_month=st.just(date(2026, 11, 1)),
        runtime_seconds=st.floats(0, 1e7),
        runtime_excused=st.sampled_from([None, date(2026, 11, 1)]),
        warned=st.booleans(),
        frozen_bytes=st.none() | st.integers(0, 10**12),
        growing=st.integers(0, 3),
        rebuilding=st.booleans(),
    )
)
def test_no_verdict_contradicts_itself(standing: QuotaState) -> None:
    verdict = decide(standing)
    assert not (verdict.freeze and verdict.thaw)
    assert not (verdict.pause and verdict.resume)
    assert not (verdict.thaw and verdict.pause is PauseReason.STORAGE)
    if verdict.resume:
        assert standing.paused_reason in (PauseReason.RUNTIME, PauseReason.STORAGE), "an operator's pause stays"
    if verdict.pause is PauseReason.STORAGE:
        assert standing.frozen, "writes are frozen before anything is paused"
