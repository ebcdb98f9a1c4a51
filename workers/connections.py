"""Looks after the connections of a region's hosts: counts them, and shares them out while they are short."""

import asyncio

import structlog

from app.core.settings import Settings
from app.engines.base import EngineError
from app.hosts.adapters import Adapters, HostRemoved
from app.hosts.records import Host, registered_hosts
from app.provisioning.connections import look_after
from app.quotas.plans import Plans

_NEAR_SECONDS = 1.0
"""The pause between two looks at a host whose connections are about to be short."""
_HOST_SECONDS = 20.0
"""How long one look may take, so that a host that hangs costs the others nothing."""

log = structlog.get_logger(__name__)


async def watch_connections(plans: Plans, adapters: Adapters, settings: Settings, region: str) -> None:
    """Runs until cancelled. Any number may run concurrently: they take turns."""
    usual = settings.connection_watch_seconds
    near: set[int] = set()
    while True:
        pause = min(usual, _NEAR_SECONDS) if near else usual
        await asyncio.sleep(pause)
        try:
            hosts = await registered_hosts(region)
        except Exception as fault:
            # Our own database is away. What is held stays held, and is looked after when it is back.
            log.warning("connections_unwatched", reason=str(fault) or type(fault).__name__)
            continue
        looks = await asyncio.gather(
            *(_look(plans, adapters, host, _NEAR_SECONDS if host.id in near else usual) for host in hosts)
        )
        near = {host.id for host, is_near in zip(hosts, looks, strict=True) if is_near}


async def _look(plans: Plans, adapters: Adapters, host: Host, seconds: float) -> bool:
    try:
        async with asyncio.timeout(_HOST_SECONDS):
            # A little less, or a timer that is early would leave out every second turn.
            return await look_after(plans, adapters, host, 0.8 * min(seconds, _NEAR_SECONDS))
    except (EngineError, HostRemoved, TimeoutError) as error:
        log.warning("connections_not_counted", host=host.address, reason=str(error) or "no answer in time")
    except Exception as fault:
        log.warning("connections_unwatched", host=host.address, reason=str(fault) or type(fault).__name__)
    return False
