"""What a team may have altogether, by its tier."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec


class TierLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a team may have of each at a time."""

    deleted_databases: int
    """Databases that were deleted and whose data is kept: beyond it the oldest go before their grace is over."""
    deleted_storage_gb: float
    """The storage of all of them; the one that was deleted last is kept whatever its size."""
    blueprints: int
    blueprint_versions: int
    """Versions of one blueprint."""
    blueprint_applications: int
    """Pending or running, on all databases of the team."""
    query_executions: int
    """Questions under way."""
    restorations: int
    """Under way: databases that are being made from a backup or another database, or restored."""
    backups: int
    """Backups that are kept or under way, those of policies included."""
    backups_under_way: int
    """Backups under way that somebody asked for."""
    backup_tests: int
    """Restore tests under way that somebody asked for: fewer than a worker takes at once."""
    backup_storage_gb: float
    """What all backups take in the store: beyond it backups that nobody asked for go before their time, and none is
    taken that somebody asks for."""
    audit_days: int
    """For how long the team sees its events in the audit log."""


DEFAULT_TIERS: Mapping[str, TierLimits] = MappingProxyType(
    {
        "free": TierLimits(
            deleted_databases=3,
            deleted_storage_gb=1,
            blueprints=50,
            blueprint_versions=50,
            blueprint_applications=10,
            query_executions=10,
            restorations=1,
            backups=100,
            backups_under_way=5,
            backup_tests=1,
            backup_storage_gb=5,
            audit_days=30,
        ),
        "pro": TierLimits(
            deleted_databases=50,
            deleted_storage_gb=200,
            blueprints=1000,
            blueprint_versions=200,
            blueprint_applications=200,
            query_executions=50,
            restorations=5,
            backups=5_000,
            backups_under_way=50,
            backup_tests=2,
            backup_storage_gb=1_000,
            audit_days=180,
        ),
        "enterprise": TierLimits(
            deleted_databases=500,
            deleted_storage_gb=2000,
            blueprints=10_000,
            blueprint_versions=1000,
            blueprint_applications=2000,
            query_executions=200,
            restorations=20,
            backups=50_000,
            backups_under_way=200,
            backup_tests=4,
            backup_storage_gb=10_000,
            audit_days=400,
        ),
    }
)
