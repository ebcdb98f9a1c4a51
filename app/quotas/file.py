"""An operator's own plans: a TOML file with a table for each plan, and for each tier, that is to be otherwise.

[free]
storage_gb = 1
connections = 10
runtime_hours = 200     # left out: no limit
users = 5               # of one database, besides its own; left out: 20
warning_pct = 80
backups = true          # taken without being asked for; what is left out here and below stays as it is
backup_every_hours = 24
backup_keep_days = 3
backup_keep_last = 1    # completed ones that stay, whatever their age
backup_test_every_days = 30

[tiers.free]            # what is left out stays as it is
deleted_databases = 5
"""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import msgspec

from app.core.settings import InvalidSettings
from app.quotas.plans import DEFAULT_PLANS, DEFAULT_USERS, Limits, Plan, Plans
from app.quotas.tiers import TierLimits

Value = TypeVar("Value")
_TIERS = "tiers"
_Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class _Entry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    storage_gb: Annotated[float, msgspec.Meta(gt=0, le=1_000_000)]
    connections: Annotated[int, msgspec.Meta(ge=1, le=100_000)]
    warning_pct: Annotated[int, msgspec.Meta(ge=1, le=100)]
    runtime_hours: Annotated[float, msgspec.Meta(gt=0, le=100_000)] | None = None
    users: Annotated[int, msgspec.Meta(ge=0, le=50)] = DEFAULT_USERS
    backups: bool | msgspec.UnsetType = msgspec.UNSET
    backup_every_hours: Annotated[int, msgspec.Meta(ge=1, le=720)] | msgspec.UnsetType = msgspec.UNSET
    backup_keep_days: Annotated[int, msgspec.Meta(ge=1, le=3650)] | msgspec.UnsetType = msgspec.UNSET
    backup_keep_last: Annotated[int, msgspec.Meta(ge=1, le=1000)] | msgspec.UnsetType = msgspec.UNSET
    backup_test_every_days: Annotated[int, msgspec.Meta(ge=1, le=365)] | msgspec.UnsetType = msgspec.UNSET


class _TierEntry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The fields of `TierLimits`."""

    deleted_databases: _Count | msgspec.UnsetType = msgspec.UNSET
    blueprints: _Count | msgspec.UnsetType = msgspec.UNSET
    blueprint_versions: _Count | msgspec.UnsetType = msgspec.UNSET
    blueprint_applications: _Count | msgspec.UnsetType = msgspec.UNSET
    query_executions: _Count | msgspec.UnsetType = msgspec.UNSET
    restorations: _Count | msgspec.UnsetType = msgspec.UNSET
    backups: _Count | msgspec.UnsetType = msgspec.UNSET
    backups_under_way: _Count | msgspec.UnsetType = msgspec.UNSET
    backup_tests: _Count | msgspec.UnsetType = msgspec.UNSET
    backup_storage_gb: Annotated[float, msgspec.Meta(ge=0, le=1_000_000)] | msgspec.UnsetType = msgspec.UNSET
    audit_days: Annotated[int, msgspec.Meta(ge=1, le=3650)] | msgspec.UnsetType = msgspec.UNSET
    deleted_storage_gb: Annotated[float, msgspec.Meta(ge=0, le=1_000_000)] | msgspec.UnsetType = msgspec.UNSET


def load_plans(path: Path | None) -> Plans:
    """The default plans and tiers, with the file's in the place of those of the same names; `path` is the setting
    `plans_file`. Raises `InvalidSettings` naming the file and every place in it that can't be used."""
    if path is None:
        return DEFAULT_PLANS
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or str(fault)
        raise InvalidSettings(f"HEADWATER_PLANS_FILE: {path}: {reason}") from None
    faults: list[str] = []
    tiers = tables.pop(_TIERS, {})
    if not isinstance(tiers, dict):
        faults.append(f"[{_TIERS}]: Expected a table for each tier")
        tiers = {}
    plans, by_tier = DEFAULT_PLANS.by_name, DEFAULT_PLANS.tiers
    loaded = Plans(
        by_name=_merged(tables, "", plans, lambda name, table: _plan(name, msgspec.convert(table, _Entry)), faults),
        tiers=_merged(tiers, f"{_TIERS}.", by_tier, _tier, faults),
    )
    if faults:
        raise InvalidSettings("\n".join(f"HEADWATER_PLANS_FILE: {path}: {fault}" for fault in faults))
    return loaded


def _merged(
    tables: Mapping[str, Any],
    prefix: str,
    known: Mapping[str, Value],
    convert: Callable[[str, Any], Value],
    faults: list[str],
) -> Mapping[str, Value]:
    """`known`, with each table in the place of the entry of that name; tables that can't be used are added to
    `faults`."""
    kind = "tier" if prefix else "plan"
    merged = dict(known)
    for name, table in tables.items():
        if name not in known:
            faults.append(f"[{prefix}{name}]: no such {kind}; there are {', '.join(known)}")
            continue
        try:
            merged[name] = convert(name, table)
        except msgspec.ValidationError as fault:
            faults.append(f"[{prefix}{name}]: {fault}")
    return MappingProxyType(merged)


def _tier(name: str, table: Any) -> TierLimits:
    entry = msgspec.structs.asdict(msgspec.convert(table, _TierEntry))
    given = {field: value for field, value in entry.items() if value is not msgspec.UNSET}
    return msgspec.structs.replace(DEFAULT_PLANS.tiers[name], **given)


def _plan(name: str, entry: _Entry) -> Plan:
    limits = Limits(
        storage_hard_limit_gb=entry.storage_gb,
        connection_hard_limit=entry.connections,
        warning_threshold_pct=entry.warning_pct,
    )
    given = {
        "enabled": entry.backups,
        "every_hours": entry.backup_every_hours,
        "keep_days": entry.backup_keep_days,
        "keep_last": entry.backup_keep_last,
        "test_every_days": entry.backup_test_every_days,
    }
    own = {field: value for field, value in given.items() if value is not msgspec.UNSET}
    backups = msgspec.structs.replace(DEFAULT_PLANS.by_name[name].backups, **own)
    return Plan(limits=limits, runtime_hours=entry.runtime_hours, users=entry.users, backups=backups)
