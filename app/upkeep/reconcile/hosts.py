"""Checking hosts: each rule counts only if two snapshots violate it."""

import asyncio
from datetime import timedelta

from app.core.secrets import SecretBox
from app.engines.base import EngineAdapter, EngineError
from app.hosts.adapters import Adapters, HostRemoved
from app.hosts.records import Host, registered_hosts
from app.upkeep.reconcile import orphans
from app.upkeep.reconcile.accounts import check_accounts
from app.upkeep.reconcile.dump_accounts import check_dump_accounts
from app.upkeep.reconcile.findings import Violation
from app.upkeep.reconcile.held import check_held
from app.upkeep.reconcile.host_resources import scarce
from app.upkeep.reconcile.host_rules import Inspection, mismatches
from app.upkeep.reconcile.logins import active, try_logins
from app.upkeep.reconcile.snapshot import take_snapshot

UNREACHABLE = "host_unreachable"
RECHECK_SECONDS = 1.0
"""The time between the two snapshots: a change in progress at the first has ended at the second."""


async def check_hosts(box: SecretBox, adapters: Adapters, orphan_age: timedelta | None) -> list[Violation]:
    """Checks all rules on every host, with a login to every active database."""
    found = await asyncio.gather(*(_check_host(box, adapters, host, orphan_age) for host in await registered_hosts()))
    return [violation for violations in found for violation in violations]


async def inspect_host(host: Host, adapter: EngineAdapter) -> Inspection:
    """Compares the host with our records, twice if anything differs. Raises `EngineError`."""
    snapshot = await take_snapshot(host, adapter)
    suspicions = {mismatch.key for mismatch in mismatches(snapshot)}
    if not suspicions:
        return Inspection(snapshot, [])
    await asyncio.sleep(RECHECK_SECONDS)
    again = await take_snapshot(host, adapter)
    return Inspection(again, [mismatch for mismatch in mismatches(again) if mismatch.key in suspicions])


def unreachable(host: Host, error: EngineError) -> Violation:
    return Violation(rule=UNREACHABLE, subject=host.address, detail=str(error))


async def _check_host(box: SecretBox, adapters: Adapters, host: Host, orphan_age: timedelta | None) -> list[Violation]:
    try:
        adapter = await adapters.of_host(host.id)
        inspection = await inspect_host(host, adapter)
    except HostRemoved:
        return []
    except EngineError as error:
        return [unreachable(host, error)]
    logins = await try_logins(box, adapter, active(inspection.snapshot.recorded.values()))
    shared = await scarce(host, adapter)
    strays = (await check_accounts(adapter, active(inspection.snapshot.recorded.values()))).violations
    strays += await check_dump_accounts(inspection.snapshot, adapter)
    strays += await check_held(inspection.snapshot, adapter)
    return [*await orphans.dated(inspection, orphan_age), *shared, *strays, *(refusal.violation for refusal in logins)]
