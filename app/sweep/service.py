"""Sweeping in batches: small enough that no statement holds many rows for long."""

from app.contracts.upkeep import Swept
from app.store.session import fetch
from app.sweep.rules import SWEEPS, Retention, Sweep

_BATCH = 500
_BATCHES = 20
"""In one step."""


def kinds() -> list[str]:
    return [sweep.what for sweep in SWEEPS]


async def sweep(what: str, retention: Retention, *, batch: int = _BATCH) -> Swept:
    """Each batch is committed by itself, so that a step that dies has done a part for good. Raises `LookupError` for an
    unknown kind."""
    rule = _rule(what)
    removed = 0
    for _ in range(_BATCHES):
        gone = len(await fetch(rule.sql, batch, *([getattr(retention, rule.kept)] if rule.kept else [])))
        removed += gone
        if gone < batch:
            return Swept(removed=removed, more=False)
    return Swept(removed=removed, more=True)


def _rule(what: str) -> Sweep:
    for rule in SWEEPS:
        if rule.what == what:
            return rule
    raise LookupError(f"nothing is known of {what}")
