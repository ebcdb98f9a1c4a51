"""The rules of every host, held against what it says twice."""

import asyncio
from datetime import timedelta

from app.core.secrets import SecretBox
from app.engines.base import EngineAdapter, EngineError
from app.hosts.adapters import Adapters
from app.upkeep.reconcile import orphans
from app.upkeep.reconcile.host_rules import Seen, faults
from app.upkeep.reconcile.logins import active, try_logins
from app.upkeep.reconcile.look import Host, hosts, look_at
from app.upkeep.reconcile.report import Violation
from app.upkeep.reconcile.shared import scarce

UNREACHABLE = "host_unreachable"
AGAIN_SECONDS = 1.0
"""Between the two looks: what was on its way at the first is there at the second, or gone."""


async def check_hosts(box: SecretBox, adapters: Adapters, orphan_age: timedelta | None) -> list[Violation]:
    """Every rule on every host, with a login to every active database."""
    found = await asyncio.gather(*(_check_host(box, adapters, host, orphan_age) for host in await hosts()))
    return [violation for violations in found for violation in violations]


async def see(host: Host, adapter: EngineAdapter) -> Seen:
    """Raises `EngineError`."""
    look = await look_at(host, adapter)
    suspicions = {fault.key for fault in faults(look)}
    if not suspicions:
        return Seen(look, [])
    await asyncio.sleep(AGAIN_SECONDS)
    again = await look_at(host, adapter)
    return Seen(again, [fault for fault in faults(again) if fault.key in suspicions])


def unreachable(host: Host, error: EngineError) -> Violation:
    return Violation(rule=UNREACHABLE, subject=host.address, detail=str(error))


async def _check_host(box: SecretBox, adapters: Adapters, host: Host, orphan_age: timedelta | None) -> list[Violation]:
    adapter = await adapters.of_host(host.id)
    try:
        seen = await see(host, adapter)
    except EngineError as error:
        return [unreachable(host, error)]
    logins = await try_logins(box, adapter, active(seen.look.recorded.values()))
    shared = await scarce(host, adapter)
    return [*await orphans.dated(seen, orphan_age), *shared, *(refusal.violation for refusal in logins)]
