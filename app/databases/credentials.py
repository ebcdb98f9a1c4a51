"""Tenants' own accounts, which must accept the recorded password.

No engine can keep an account from changing its own password. So the recorded one is restored, and an event reports it.
"""

from uuid import UUID

from app.contracts.base import DatabaseStatus
from app.core.secrets import SecretBox
from app.databases import records
from app.databases.events import append_event
from app.databases.passwords import tenant_of
from app.engines.base import CredentialsRefused, EngineAdapter, Tenant, TenantFull
from app.outbox.event_types import EventType
from app.quotas import own_logins
from app.quotas.plans import Plans
from app.store.locks import database_lock
from app.store.session import execute, fetch_values, transaction


async def restore(plans: Plans, box: SecretBox, adapter: EngineAdapter, database: UUID) -> bool:
    """Has the account take its recorded password again, and says whether it was put back; a call that finds the work
    of one that died finishes it. `adapter` is that of the database's host. Raises `EngineError`, `CredentialsRefused`
    where it didn't help, `LockBusy`, `LockLost`."""
    async with database_lock(database):
        record = await records.find(database)
        if (
            record is None
            or record.status is not DatabaseStatus.ACTIVE
            or record.access_applied < record.access_revision
        ):
            return False
        tenant = tenant_of(record, box)
        async with own_logins.under_way([database]):
            if await _is_refused(adapter, tenant):
                # Before the first statement, so that the event is written even after a crash.
                await execute(
                    "UPDATE databases SET credentials_refused_at = coalesce(credentials_refused_at, now())"
                    " WHERE id = $1",
                    record.id,
                )
                await adapter.restore_credentials(tenant)
                if await _is_refused(adapter, tenant):
                    raise CredentialsRefused(f"{record.engine_name} refuses the password that it was just given")
        return await _record_restored(plans, database)


async def note_tried(databases: list[UUID]) -> None:
    """A login to each was tried."""
    await execute("UPDATE databases SET login_tried_at = now() WHERE uuid = any($1::uuid[])", databases)


async def untried_longest(host_id: int, databases: list[UUID], most: int) -> list[UUID]:
    """Those of them whose account may have to be put right first, then those that no login was tried to for longest."""
    return await fetch_values(
        UUID,
        "SELECT uuid FROM databases WHERE host_id = $1 AND uuid = any($2::uuid[])"
        " ORDER BY credentials_refused_at, login_tried_at NULLS FIRST, random() LIMIT $3",
        host_id,
        databases,
        most,
    )


async def _is_refused(adapter: EngineAdapter, tenant: Tenant) -> bool:
    try:
        await adapter.log_in(tenant)
    except CredentialsRefused:
        return True
    except TenantFull:
        pass  # and let in otherwise
    return False


async def _record_restored(plans: Plans, database: UUID) -> bool:
    async with transaction():
        restored = await execute(
            "UPDATE databases SET credentials_refused_at = NULL"
            " WHERE uuid = $1 AND status <> 'deleted' AND credentials_refused_at IS NOT NULL",
            database,
        )
        if restored:
            await append_event(plans, EventType.DATABASE_PASSWORD_RESTORED, database)
        return bool(restored)
