"""What a team may have altogether, by its tier."""

import msgspec


class TierLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a team may have of each at a time."""

    deleted_databases: int
    """Databases that were deleted and whose data is kept: beyond it the oldest go before their grace is over."""
    deleted_storage_gb: float
    """The storage of all of them; the one that was deleted last is kept whatever its size."""


TIER_LIMITS: dict[str, TierLimits] = {
    "free": TierLimits(deleted_databases=3, deleted_storage_gb=1),
    "pro": TierLimits(deleted_databases=50, deleted_storage_gb=200),
    "enterprise": TierLimits(deleted_databases=500, deleted_storage_gb=2000),
}
