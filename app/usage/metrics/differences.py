"""What counters grew by between two looks at them, where that is known."""

import msgspec

from app.engines.base import Counters

MOST = 2**46
"""The most that a counter can have grown by: no database counts so many in a few minutes, and what says so is wrong. As
many of these as fit into 60 days can be summed up in a bigint."""
_LARGEST = 2**62


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How much the counters of one database grew in some time, each None where it isn't known."""

    transactions: int | None = None
    rows_read: int | None = None
    rows_written: int | None = None
    cache_hits: int | None = None
    cache_reads: int | None = None


COUNTS = Counts.__struct_fields__
NOTHING_KNOWN = Counts()


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """The counters of one database, and where it was then."""

    place: str
    counters: Counters


def between(before: Look, after: Look) -> Counts | None:
    """How much the counters grew between two looks. None where these can't be compared: the database is elsewhere, or
    its counters began anew."""
    old, new = before.counters, after.counters
    if before.place != after.place or old.began != new.began:
        return None
    if len(old.witness) != len(new.witness) or any(
        now < then for then, now in zip(old.witness, new.witness, strict=True)
    ):
        return None
    grown: dict[str, int | None] = {}
    for name in COUNTS:
        then, now = getattr(old, name), getattr(new, name)
        grown[name] = None if then is None or now is None else now - then
        if not 0 <= (grown[name] or 0) <= MOST:
            return None
    return Counts(**grown)


def add(total: Counts, more: Counts) -> Counts:
    """The sum of all that is known."""
    return Counts(**{name: _sum(getattr(total, name), getattr(more, name)) for name in COUNTS})


def _sum(total: int | None, more: int | None) -> int | None:
    if total is None or more is None:
        return total if more is None else more
    return min(total + more, _LARGEST)
