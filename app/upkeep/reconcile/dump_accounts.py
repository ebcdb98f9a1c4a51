"""Accounts of dumps and loads on a host that a process which died has left there."""

from collections.abc import Sequence

from app.engines.base import EngineAdapter, EngineError
from app.upkeep.reconcile.findings import Violation
from app.upkeep.reconcile.snapshot import HostSnapshot

LEFT = "dump_account_left"


async def check_dump_accounts(snapshot: HostSnapshot, adapter: EngineAdapter) -> list[Violation]:
    """A violation for each account that was left. What the host doesn't report now is left to the next run."""
    try:
        left = await adapter.left_dumps(list(snapshot.recorded))
    except EngineError:
        return []
    detail = f"on {snapshot.host.address} is of a dump or load whose process has died, and nothing uses it"
    return [Violation(rule=LEFT, subject=account, detail=detail) for account in left]


async def remove_dump_accounts(
    adapter: EngineAdapter, snapshot: HostSnapshot, violations: Sequence[Violation]
) -> list[str]:
    """Removes the accounts that were left. Returns a sentence for each, or for the failure."""
    if not violations:
        return []
    try:
        removed = await adapter.left_dumps(list(snapshot.recorded), remove=True)
    except EngineError as fault:
        return [f"Couldn't remove what dumps have left on {snapshot.host.address}: {fault}."]
    return [f"Removed {account}, which a dump or load had left on {snapshot.host.address}." for account in removed]
