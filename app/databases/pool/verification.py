"""Trying the pool's databases again: what nobody uses may break without anybody noticing."""

import asyncio
from datetime import datetime

import structlog

from app.core.ids import marker
from app.core.secrets import SecretBox
from app.databases.passwords import password_place
from app.databases.pool.members import discard_member
from app.databases.pooled import UnverifiedMember, record_verified, unverified_members
from app.engines.base import EngineAdapter, EngineError, HostUnavailable, Tenant, TenantFull
from app.hosts.adapters import Adapters, HostRemoved
from app.hosts.loads import mark_recovered, mark_sick

_AT_ONCE = 4
_MOST = 200
"""The most members tried in one run; the next run has the others."""

log = structlog.get_logger(__name__)


async def verify(box: SecretBox, adapters: Adapters, region: str, before: datetime) -> None:
    """Logs in to the members of this region whose last proof is not newer than `before`, or whose host failed since and
    may have recovered. A host that doesn't answer is tried once."""
    untried = await unverified_members(region, before, _MOST)
    slots = asyncio.Semaphore(_AT_ONCE)
    away: set[int] = set()

    async def one_in_turn(one: UnverifiedMember) -> None:
        async with slots:
            if one.host_id in away:
                return
            try:
                await _verify_one(box, await adapters.of_host(one.host_id), one)
            except HostRemoved:
                away.add(one.host_id)
            except HostUnavailable as fault:
                # All of its databases are passed over, and with it they come back.
                away.add(one.host_id)
                await mark_sick(one.host_id, str(fault))

    await asyncio.gather(*map(one_in_turn, untried))


async def _verify_one(box: SecretBox, adapter: EngineAdapter, one: UnverifiedMember) -> None:
    """Raises `HostUnavailable`."""
    password = box.open(one.password_sealed, password_place(one.uuid))
    try:
        await adapter.log_in(Tenant(name=one.engine_name, password=password, marker=marker(one.uuid)))
    except HostUnavailable:
        raise
    except TenantFull:
        # Nobody uses it: its host has no connection left at the moment. Another run tries it again.
        return
    except EngineError as fault:
        if await discard_member(one.uuid):
            log.warning("pool_member_broken", database=str(one.uuid), reason=str(fault))
        return
    await record_verified(one.uuid)
    await mark_recovered(one.host_id)
