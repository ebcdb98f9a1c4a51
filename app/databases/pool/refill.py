"""Bringing the pools to their size, one after the other, each in a transaction that excludes every other refill."""

from datetime import datetime

import msgspec
import structlog

from app.contracts.pool import RefillResult, VerifyMembers
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.databases.pool.decision import Decision, age_limit, decide
from app.databases.pool.members import begin_member, discard_member, member_connections
from app.databases.pool.targets import PoolSize, note_setting, targets
from app.databases.pooled import delete_discarded, is_create_waiting, list_members, regions_unverified
from app.hosts.loads import place
from app.quotas.plans import Plans
from app.store.session import execute, transaction

_LOCK = 0x6865_6164_706F_6F6C
_MAX_IN_PROGRESS = 4
"""The most members of one pool on their way: so few that a create that somebody waits for always gets a slot of a
worker."""
_DISCARDS = 50
"""The most members discarded in one transaction; the next run discards the others."""
_LIVE_SECONDS = 15
"""How long a create that somebody waits for slows the refill down to one member at a time. Not to none: where somebody
always waits, the pool would never be filled again."""

log = structlog.get_logger(__name__)


class _PoolResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one pool's refill."""

    missing: int
    retry_soon: bool
    summary: str


async def refill(plans: Plans, box: SecretBox, settings: Settings, now: datetime) -> RefillResult:
    """Refills every pool, as `PoolActivities.refill_pool` describes it."""
    wanted = await targets(settings.pool_size)
    await note_setting(wanted, settings.pool_size)
    older_than = age_limit(now, settings.pool_max_age_seconds)
    results = [await _refill_one(plans, box, target, older_than) for target in wanted]
    await delete_discarded()
    return RefillResult(
        missing=sum(one.missing for one in results),
        retry_soon=any(one.retry_soon for one in results),
        summary="\n".join(one.summary for one in results) or "No host is registered.",
    )


async def find_unverified(settings: Settings, now: datetime) -> list[VerifyMembers]:
    """Regions with members whose last proof is too old, or came before their host failed."""
    before = age_limit(now, settings.pool_verify_seconds)
    return [VerifyMembers(region=region, before=before) for region in await regions_unverified(before)]


async def _refill_one(plans: Plans, box: SecretBox, target: PoolSize, older_than: datetime) -> _PoolResult:
    async with transaction():
        await execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        members = await list_members(target.engine, target.region)
        decision = decide(members, target.size, member_connections(plans), older_than)
        for member in decision.discard[:_DISCARDS]:
            await discard_member(member.uuid)
        begun, full = 0, False
        if decision.missing:
            most = 1 if await is_create_waiting(target.engine, target.region, _LIVE_SECONDS) else _MAX_IN_PROGRESS
            begun, full = await _begin(plans, box, target, decision, most)
        if full and decision.aged and not decision.discard:
            # There is no room for the new beside the old.
            await discard_member(decision.aged[0].uuid)
    if begun or decision.discard:
        log.info(
            "pool_refilled",
            engine=target.engine.value,
            region=target.region,
            begun=begun,
            discarded=len(decision.discard[:_DISCARDS]),
        )
    missing = decision.missing - begun
    retry_soon = (missing > 0 and not full) or len(decision.discard) > _DISCARDS
    return _PoolResult(missing=missing, retry_soon=retry_soon, summary=_summary(target, decision, begun, full))


async def _begin(plans: Plans, box: SecretBox, target: PoolSize, decision: Decision, most: int) -> tuple[int, bool]:
    """Begins missing members. Returns how many, and whether there was no healthy host with room for more."""
    begun = 0
    for _ in range(min(decision.missing, most - decision.making)):
        host = await place(target.engine, target.region, member_connections(plans))
        if host is None or host.sick:
            return begun, True
        await begin_member(plans, box, target.engine, host)
        begun += 1
    return begun, False


def _summary(target: PoolSize, decision: Decision, begun: int, full: bool) -> str:
    text = (
        f"{target.engine.value} in {target.region}: {decision.ready} of {target.size} ready, "
        f"{decision.making + begun} on their way."
    )
    if decision.discard:
        text += f" {len(decision.discard)} discarded."
    return f"{text} No healthy host has room for more." if full else text
