"""The audit log's upkeep: sealing, keeping seals elsewhere, partitions, and counts of what was refused."""

from datetime import timedelta
from time import monotonic

from app.audit.retention import drop_old, make_partitions, record_omitted
from app.audit.sealing import newest_seal, seal_events
from app.backups.storage.store import BackupStore
from app.core.clock import utc_now
from app.core.settings import Settings
from app.quotas.plans import Plans
from workers.due import repeat

_UPKEEP_SECONDS = 600.0


async def serve_audit(plans: Plans, settings: Settings) -> None:
    """Runs until cancelled. Any number may run concurrently."""
    upkeep_at = 0.0

    async def look() -> None:
        nonlocal upkeep_at
        await seal_events()
        if monotonic() >= upkeep_at:
            await keep_up(plans, settings)
            upkeep_at = monotonic() + _UPKEEP_SECONDS

    # Nothing is lost when a look fails: events stay unsealed, and `headwater audit verify` says for how long.
    await repeat(look, settings.audit_seal_seconds, failure="audit_waiting")


async def keep_up(plans: Plans, settings: Settings) -> None:
    """Makes partitions and drops old ones, and records refusals that left no event."""
    await make_partitions()
    await record_omitted(settings.audit_refusals_per_hour)
    await drop_old(plans.longest_audit_days)


async def serve_audit_heads(store: BackupStore, plans: Plans, settings: Settings) -> None:
    """Keeps the newest seal where the backups are. For workers that reach them: those that seal don't. Runs until
    cancelled; any number may run concurrently."""
    head_at = 0.0

    async def look() -> None:
        nonlocal head_at
        # A seal that is not kept, because there is none yet or the store is away, is tried again at the next look.
        if monotonic() >= head_at and await keep_head(store, plans):
            head_at = monotonic() + settings.audit_head_seconds

    await repeat(look, settings.audit_seal_seconds, failure="audit_head_waiting")


async def keep_head(store: BackupStore, plans: Plans) -> bool:
    """Keeps the newest seal with the backups. Returns whether there is one."""
    seal = await newest_seal()
    if seal is None:
        return False
    await store.audit_heads.keep(seal.id, seal.hash.hex(), utc_now() + timedelta(days=plans.longest_audit_days))
    return True
