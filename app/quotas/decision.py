"""What follows from a measurement: a pure decision, the same whoever asks again."""

from datetime import date, datetime, timedelta

import msgspec

from app.contracts.base import DatabaseStatus, PauseReason

GIB = 2**30
THAW_SHARE = 0.9
"""The share of the limit below which a frozen database thaws, so that one at its limit doesn't freeze and thaw in
turn."""
REARM_SHARE = 0.05
"""A share of the limit. A warning comes again after the storage was this far below the threshold."""
GROWTH_SHARE = 0.02
GROWTH_BYTES = 8 * 2**20
"""What a frozen database may grow by without being taken to write: the engine's own housekeeping. InnoDB makes the file
of a rebuilt table up to 4 MiB longer while it removes rows that were deleted."""
HELD_UP = timedelta(minutes=10)
"""How long a freeze may be on its way to an engine that can be measured. After that the database is closed instead:
ending access asks far less of an engine, whatever its tenant has made there."""
GROWTH_LOOKS = 2
"""How many measurements in a row must find growth."""
REBUILD_LOOKS = 60
"""The same while a table is being rebuilt, which takes as much storage again as the table until it's done. The number
is bounded, so that nobody who rebuilds without end grows behind it."""


class QuotaState(msgspec.Struct, frozen=True, kw_only=True):
    """A database as recorded, with its last measurement and the limits in force."""

    status: DatabaseStatus
    paused_reason: PauseReason | None
    frozen: bool
    access_settled: bool
    """The engine is as recorded: what was measured since counts against a freeze."""
    unsettled_since: datetime | None
    """When the change was made that the engine hasn't followed yet."""
    limit_bytes: float
    warning_pct: int
    runtime_limit_seconds: float | None
    measured_at: datetime
    judged_at: datetime | None
    storage_bytes: int
    runtime_month: date
    runtime_seconds: float
    runtime_excused: date | None
    warned: bool
    frozen_bytes: int | None
    growing: int
    rebuilding: bool
    """A table was being rebuilt when the storage was measured, or the time before: PostgreSQL removes the old one when
    it no longer shows the rebuild."""


class QuotaActions(msgspec.Struct, frozen=True, kw_only=True):
    """What to do, and what to remember."""

    warn: bool = False
    freeze: bool = False
    thaw: bool = False
    pause: PauseReason | None = None
    resume: bool = False
    warned: bool
    frozen_bytes: int | None
    growing: int


def decide(standing: QuotaState) -> QuotaActions:
    over = standing.storage_bytes >= standing.limit_bytes
    below = standing.storage_bytes < standing.limit_bytes * THAW_SHARE
    thaw = standing.frozen and below
    frozen_bytes, growing = _growth(standing)
    grew = growing >= (REBUILD_LOOKS if standing.rebuilding else GROWTH_LOOKS) and not thaw
    warn = _reached_threshold(standing) and not standing.warned
    pause, resume = None, False
    if standing.status is DatabaseStatus.ACTIVE:
        if _out_of_hours(standing):
            pause = PauseReason.RUNTIME
        elif grew or (over and _is_held_up(standing)):
            pause = PauseReason.STORAGE
    elif standing.paused_reason is PauseReason.RUNTIME:
        resume = not _out_of_hours(standing)
    elif standing.paused_reason is PauseReason.STORAGE:
        resume = below
    return QuotaActions(
        warn=warn,
        freeze=over and not standing.frozen,
        thaw=thaw,
        pause=pause,
        resume=resume,
        warned=warn or (standing.warned and not _far_below_threshold(standing)),
        # A pause ends the growth: whoever lifts it gives a new start.
        frozen_bytes=None if grew or thaw else frozen_bytes,
        growing=0 if grew or thaw else growing,
    )


def _is_held_up(standing: QuotaState) -> bool:
    since = standing.unsettled_since
    return standing.frozen and since is not None and standing.measured_at - since >= HELD_UP


def _out_of_hours(standing: QuotaState) -> bool:
    limit = standing.runtime_limit_seconds
    excused = standing.runtime_excused == standing.runtime_month
    return limit is not None and standing.runtime_seconds >= limit and not excused


def _reached_threshold(standing: QuotaState) -> bool:
    return standing.storage_bytes >= _threshold(standing)


def _far_below_threshold(standing: QuotaState) -> bool:
    return standing.storage_bytes < _threshold(standing) - standing.limit_bytes * REARM_SHARE


def _threshold(standing: QuotaState) -> float:
    return standing.limit_bytes * standing.warning_pct / 100


def _growth(standing: QuotaState) -> tuple[int | None, int]:
    """The least storage since the freeze, in bytes, and for how many measurements in a row there has been more."""
    if not standing.frozen:
        return None, 0
    counts = standing.status is DatabaseStatus.ACTIVE and standing.access_settled
    if not counts or standing.judged_at == standing.measured_at:
        return standing.frozen_bytes, standing.growing
    least = standing.storage_bytes if standing.frozen_bytes is None else standing.frozen_bytes
    allowance = max(GROWTH_BYTES, standing.limit_bytes * GROWTH_SHARE)
    growing = standing.growing + 1 if standing.storage_bytes > least + allowance else 0
    return min(least, standing.storage_bytes), growing
