"""Resources that all tenants of a host share, checked before they run out."""

from app.engines.base import EngineAdapter, EngineError, SharedResource
from app.upkeep.reconcile.report import Violation
from app.upkeep.reconcile.snapshot import Host

SCARCE = "host_resource_scarce"
_PERCENT = 50
"""Of the host's capacity. A healthy server uses a tenth of its transaction ids between two rounds of vacuum."""


async def scarce(host: Host, adapter: EngineAdapter) -> list[Violation]:
    """A finding for each resource of which half is used, or about which the server reports a problem."""
    try:
        resources = await adapter.shared_resources()
    except EngineError as error:
        return [Violation(rule=SCARCE, subject=host.address, detail=f"doesn't tell what is used up: {error}")]
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
