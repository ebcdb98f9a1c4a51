"""The consistency check as a whole."""

from datetime import timedelta

from app.core.secrets import SecretBox
from app.hosts.adapters import Adapters
from app.reconcile.hosts import check_hosts
from app.reconcile.records import check_records
from app.reconcile.report import Report

PATIENCE = timedelta(seconds=60)
"""How long anything may be on its way before it counts as stuck."""


async def check(box: SecretBox) -> Report:
    """Runs every rule. Changes nothing."""
    adapters = Adapters(box)
    try:
        violations = [*await check_records(PATIENCE), *await check_hosts(box, adapters)]
    finally:
        await adapters.close()
    return Report(ok=not violations, violations=violations)
