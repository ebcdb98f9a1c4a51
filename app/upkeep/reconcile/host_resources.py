"""What a host lacks: shared resources that run out, and extensions that an operator listed."""

from collections.abc import Sequence

from app.engines.base import EngineAdapter, EngineError, SharedResource
from app.engines.registry import ADAPTERS
from app.hosts.listing import list_hosts
from app.hosts.records import Host
from app.upkeep.reconcile.findings import Violation

SCARCE = "host_resource_scarce"
_PERCENT = 50
"""The percentage of a resource's capacity from which on it is scarce. A healthy server uses a tenth of its transaction
ids between two rounds of vacuum."""


async def scarce(host: Host, adapter: EngineAdapter) -> list[Violation]:
    """A finding for each resource of which half is used, or about which the server reports a problem."""
    try:
        resources = await adapter.shared_resources()
    except EngineError as error:
        return [
            Violation(rule=SCARCE, subject=host.address, detail=f"doesn't report the use of its resources: {error}")
        ]
    return [
        Violation(
            rule=SCARCE,
            subject=f"{host.address}/{one.name}",
            detail=detail,
        )
        for one in resources
        if (detail := _concern(one)) is not None
    ]


def _concern(one: SharedResource) -> str | None:
    if one.concern is None and one.capacity is not None and one.used * 100 >= one.capacity * _PERCENT:
        return f"{one.used:.0f} of {one.capacity:.0f} are used up"
    return one.concern


MISSING_EXTENSION = "extension_missing"


async def missing_extensions(listed: Sequence[str]) -> list[Violation]:
    """A finding for each missing extension of each host, as of the last inspection; or one for the list, if it can't
    be used."""
    found = []
    for host in await list_hosts():
        try:
            missing = ADAPTERS[host.engine].missing_extensions(listed, host.extensions)
        except EngineError as error:
            return [Violation(rule=MISSING_EXTENSION, subject="HEADWATER_POSTGRES_EXTENSIONS", detail=str(error))]
        found += [
            Violation(
                rule=MISSING_EXTENSION,
                subject=f"{host.host}:{host.port}/{name}",
                detail="new databases there lack it: a superuser makes it in the template",
            )
            for name in missing
        ]
    return found
