"""Repairs that a run makes by itself, one database at a time, under that database's lock."""

import random
from collections.abc import Coroutine, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import structlog

from app.contracts.base import DatabaseStatus
from app.core.secrets import SecretBox
from app.credentials import restoring
from app.databases.hosted import RecordedDatabase, is_frozen
from app.engines.base import EngineAdapter, EngineError, Tenant
from app.quotas.plans import Plans
from app.store.locks import LockBusy, LockLost, database_lock
from app.upkeep.reconcile import orphans
from app.upkeep.reconcile.host_rules import MISSING, WRITABLE, Inspection, Mismatch
from app.upkeep.reconcile.logins import LoginRefusal

MAX_REPAIRS = 20
"""The maximum of repairs, and of removals, on one host in one run."""
log = structlog.get_logger(__name__)
Due = TypeVar("Due")


async def repair_host(inspection: Inspection, adapter: EngineAdapter, orphan_age: timedelta | None) -> list[str]:
    """Restores what tenants lack, closes what moved databases left behind, and removes orphans that were first seen
    `orphan_age` ago (none if it is None). Returns a sentence for each repair, failed ones included."""
    return [
        *await _repair_all(inspection, adapter),
        *await _close_left_behind(inspection, adapter),
        *await _remove_orphans(inspection, adapter, orphan_age),
    ]


async def restore_credentials(
    plans: Plans,
    box: SecretBox,
    adapter: EngineAdapter,
    tried: Sequence[RecordedDatabase],
    refusals: Sequence[LoginRefusal],
) -> list[str]:
    """Restores the recorded passwords that tenants had changed, and finishes such repairs of a run that died.
    Returns a sentence for each."""
    refused = {refusal.recorded.uuid for refusal in refusals if refusal.credentials}
    due = [one for one in tried if one.uuid in refused or one.refused]
    return [
        await _attempt(_restore(plans, box, adapter, one), f"restore the password of {one.uuid}") for one in chosen(due)
    ]


async def _restore(plans: Plans, box: SecretBox, adapter: EngineAdapter, one: RecordedDatabase) -> str:
    if await restoring.restore(plans, box, adapter, one.uuid):
        return f"Restored the password of database {one.uuid}, which its tenant had changed."
    return f"Left the password of database {one.uuid} as it is: it is in force, or the database isn't active any more."


async def _repair_all(inspection: Inspection, adapter: EngineAdapter) -> list[str]:
    lacking = [
        fault
        for fault in inspection.mismatches
        if fault.violation.rule in (MISSING, WRITABLE) and _is_repairable(fault)
    ]
    return [
        await _attempt(_repair(inspection, adapter, fault), f"repair {fault.violation.subject}")
        for fault in chosen(lacking)
    ]


def _is_repairable(fault: Mismatch) -> bool:
    row, found = fault.recorded, fault.found
    return row is not None and row.status is DatabaseStatus.ACTIVE and found is not None and found.marker == row.marker


async def _repair(inspection: Inspection, adapter: EngineAdapter, fault: Mismatch) -> str:
    row = fault.recorded
    assert row is not None
    async with database_lock(row.uuid):
        frozen = await is_frozen(row.uuid, inspection.snapshot.host.id, row.engine_name)
        if frozen is None:
            return f"Left database {row.uuid} as it is: it is not active here any more, or changing."
        tenant = Tenant(name=row.engine_name, password="", marker=row.marker)
        await adapter.repair(tenant)
        # The engine's own state says whether the tenant is frozen, and `repair` follows that. The record decides.
        if frozen:
            await adapter.freeze(tenant)
        elif fault.found is not None and not fault.found.may_create:
            await adapter.thaw(tenant)
    return f"Repaired database {row.uuid}, found as one that {fault.violation.detail}."


async def _close_left_behind(inspection: Inspection, adapter: EngineAdapter) -> list[str]:
    return [
        await _attempt(orphans.close(inspection, adapter, found, owner), f"close {found.name}")
        for found, owner in chosen(await orphans.left_open(inspection))
    ]


async def _remove_orphans(inspection: Inspection, adapter: EngineAdapter, age: timedelta | None) -> list[str]:
    due = await orphans.due(inspection, age) if age is not None else []
    return [await _attempt(orphans.remove(inspection, adapter, found), f"remove {found.name}") for found in chosen(due)]


def chosen(due: Sequence[Due]) -> Sequence[Due]:
    """At most `MAX_REPAIRS` of them, at random: those that fail each time would otherwise stand in front of the rest
    for ever."""
    return random.sample(due, min(len(due), MAX_REPAIRS))


async def _attempt(repair: Coroutine[Any, Any, str], what: str) -> str:
    try:
        done = await repair
    except (EngineError, LockBusy, LockLost) as fault:
        done = f"Couldn't {what}: {fault}."
    log.info("reconcile_repair", message=done)
    return done
