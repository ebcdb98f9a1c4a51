"""What a database's row means for its engine."""

from app.contracts.base import DatabaseStatus
from app.databases.records import DatabaseRecord
from app.engines.base import EngineAdapter, EngineLimits, Tenant


def limits_of(record: DatabaseRecord) -> EngineLimits:
    return EngineLimits(connections=record.connections)


async def apply_access(adapter: EngineAdapter, tenant: Tenant, record: DatabaseRecord) -> str:
    """Lets in whom the row lets in; returns the state for display. Call it under the database's lock."""
    frozen = record.frozen_at is not None
    if record.status is DatabaseStatus.ACTIVE:
        await (adapter.freeze(tenant) if frozen else adapter.thaw(tenant))
    elif record.paused_reason is not None:
        await adapter.revoke_access(tenant)
        return f"paused ({record.paused_reason.value})"
    else:
        await adapter.restore_access(tenant, frozen=frozen)
    return "open, and frozen: it reads, deletes and drops, and writes nothing" if frozen else "open"
