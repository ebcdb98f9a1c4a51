"""An operator's own plans: a TOML file with a table for each plan that is to be otherwise.

[free]
storage_gb = 1
connections = 10
runtime_hours = 200     # left out: no limit
warning_pct = 80
"""

import tomllib
from pathlib import Path
from typing import Annotated

import msgspec

from app.core.settings import InvalidSettings
from app.plans.plans import PLANS, Limits, Plan


class _Entry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    storage_gb: Annotated[float, msgspec.Meta(gt=0, le=1_000_000)]
    connections: Annotated[int, msgspec.Meta(ge=1, le=100_000)]
    warning_pct: Annotated[int, msgspec.Meta(ge=1, le=100)]
    runtime_hours: Annotated[float, msgspec.Meta(gt=0, le=100_000)] | None = None


def use_plans(path: Path | None) -> None:
    """Puts the file's plans in the place of those with the same names, for the whole process. Raises
    `InvalidSettings` naming the file and every place in it that can't be used."""
    if path is not None:
        PLANS.update(read_plans(path))


def read_plans(path: Path) -> dict[str, Plan]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or str(fault)
        raise InvalidSettings(f"HEADWATER_PLANS_FILE: {path}: {reason}") from None
    faults: list[str] = []
    plans: dict[str, Plan] = {}
    for name, table in tables.items():
        if name not in PLANS:
            faults.append(f"[{name}]: no such plan; there are {', '.join(PLANS)}")
            continue
        try:
            plans[name] = _plan(msgspec.convert(table, _Entry))
        except msgspec.ValidationError as fault:
            faults.append(f"[{name}]: {fault}")
    if faults:
        raise InvalidSettings("\n".join(f"HEADWATER_PLANS_FILE: {path}: {fault}" for fault in faults))
    return plans


def _plan(entry: _Entry) -> Plan:
    limits = Limits(
        storage_hard_limit_gb=entry.storage_gb,
        connection_hard_limit=entry.connections,
        warning_threshold_pct=entry.warning_pct,
    )
    return Plan(limits=limits, runtime_hours=entry.runtime_hours)
