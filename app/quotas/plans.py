"""What each plan allows, and what a team's tier lets it ask for."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from app.core.errors import PlanLimitExceeded
from app.quotas.tiers import DEFAULT_TIERS, TierLimits

DEFAULT_USERS = 20
"""How many users a plan allows that says nothing else."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits in force for a database: those of its plan, unless they are overridden. A plan that gets smaller
    leaves a database the connections that its users have."""

    storage_hard_limit_gb: float
    connection_hard_limit: int
    warning_threshold_pct: int


class Quotas(msgspec.Struct, frozen=True, kw_only=True):
    """A database's own overrides; null means the plan's."""

    storage_hard_limit_gb: float | None = None
    connection_hard_limit: int | None = None
    warning_threshold_pct: int | None = None


class BackupRules(msgspec.Struct, frozen=True, kw_only=True):
    """When a database is backed up and its backups are tested, and how long they are kept."""

    enabled: bool = True
    every_hours: int = 24
    keep_days: int = 7
    keep_last: int = 3
    """The least number of completed ones that stay, whatever their age."""
    test_every_days: int = 14


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    limits: Limits
    runtime_hours: float | None = None
    """Hours a month with a connection open; None means no limit."""
    users: int = DEFAULT_USERS
    """The most users that one database may have besides its own."""
    backups: BackupRules = BackupRules()
    """The rules in force where a database has no others."""


class Plans(msgspec.Struct, frozen=True, kw_only=True):
    """The plans and tiers of an installation. Each process reads them once, at its start, and passes them down."""

    by_name: Mapping[str, Plan]
    tiers: Mapping[str, TierLimits]
    """By the tier's name."""

    @property
    def longest_audit_days(self) -> int:
        """The most days for which a tier sees its events in the audit log."""
        return max(tier.audit_days for tier in self.tiers.values())


def _plan(
    storage_gb: float, connections: int, users: int, backups: BackupRules, runtime_hours: float | None = None
) -> Plan:
    limits = Limits(storage_hard_limit_gb=storage_gb, connection_hard_limit=connections, warning_threshold_pct=80)
    return Plan(limits=limits, runtime_hours=runtime_hours, users=users, backups=backups)


DEFAULT_PLANS = Plans(
    by_name=MappingProxyType(
        {
            "free": _plan(0.5, 10, 5, BackupRules(keep_days=3, keep_last=1, test_every_days=30), runtime_hours=100),
            "launch": _plan(10, 50, 20, BackupRules()),
            "grow": _plan(50, 200, 30, BackupRules(every_hours=12, keep_days=14, keep_last=7, test_every_days=7)),
            "pro": _plan(100, 400, 50, BackupRules(every_hours=6, keep_days=30, keep_last=14, test_every_days=7)),
        }
    ),
    tiers=DEFAULT_TIERS,
)
"""The plans in force where the operator's file says nothing else."""

FREE_TIER_DATABASES = 1


def limits_in_force(plans: Plans, plan: str, quotas: Quotas) -> Limits:
    """The plan's limits with the overrides over them."""
    default = plans.by_name[plan].limits
    overrides = {name: value for name, value in msgspec.structs.asdict(quotas).items() if value is not None}
    return msgspec.structs.replace(default, **overrides)


def check_plan(tier: str, plan: str, databases_owned: int) -> None:
    """Checks that a team of this tier may have one more database, of this plan. Raises `PlanLimitExceeded`."""
    if tier != "free":
        return
    if plan != "free":
        raise PlanLimitExceeded(f"A team of the free tier can't have the plan {plan}.", field="plan")
    if databases_owned >= FREE_TIER_DATABASES:
        raise PlanLimitExceeded("A team of the free tier can have one database.", field="team_id")


def check_quotas(plans: Plans, tier: str, plan: str, quotas: Quotas) -> None:
    """Checks overrides: one may lower a limit for anyone, and raise it above the plan's for paying tiers only. Raises
    `PlanLimitExceeded` naming the field."""
    if tier != "free":
        return
    default = plans.by_name[plan].limits
    for field in ("storage_hard_limit_gb", "connection_hard_limit"):
        override, limit = getattr(quotas, field), getattr(default, field)
        if override is not None and override > limit:
            raise PlanLimitExceeded(
                f"A team of the free tier can't raise {field} above its plan's {limit:g}.", field=field
            )
