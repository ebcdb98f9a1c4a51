"""Rules between our records and the hosts, in both directions."""

import asyncio
from uuid import UUID

import msgspec

from app.contracts.base import DatabaseStatus
from app.core.ids import marker
from app.core.secrets import SecretBox
from app.engines.base import EngineAdapter, EngineError, Tenant
from app.hosts.adapters import Adapters, password_place
from app.reconcile.report import Violation
from app.store.session import fetch, fetch_all

_LOGINS_AT_ONCE = 8
_TENANT_FULL = frozenset({"53300", "1203", "1226"})
"""The tenant itself holds all its connections: its database answers."""


class _Host(msgspec.Struct, frozen=True):
    id: int
    address: str


class _Expected(msgspec.Struct, frozen=True):
    """A database that may have left traces on its host."""

    uuid: UUID
    status: DatabaseStatus
    engine_name: str
    password_sealed: bytes | None


async def check_hosts(box: SecretBox, adapters: Adapters) -> list[Violation]:
    """Orphans on hosts, databases that are missing there, active ones that don't answer."""
    hosts = await fetch_all(_Host, "SELECT id, host || ':' || port AS address FROM engine_hosts ORDER BY id")
    found: list[Violation] = []
    for host in hosts:
        found += await _check_host(box, adapters, host)
    return found


async def _check_host(box: SecretBox, adapters: Adapters, host: _Host) -> list[Violation]:
    adapter = await adapters.of_host(host.id)
    try:
        # The host is looked at first: what is created after that look is no orphan, and what is recorded after it
        # is not called missing.
        on_host = [tenant.name for tenant in await adapter.list_tenants()]
    except EngineError as error:
        return [Violation(rule="host_unreachable", subject=host.address, detail=str(error))]
    recorded = await fetch_all(
        _Expected,
        "SELECT uuid, status, engine_name, password_sealed FROM databases WHERE host_id = $1 AND destroyed_at IS NULL",
        host.id,
    )
    active = [one for one in recorded if one.status is DatabaseStatus.ACTIVE and one.password_sealed is not None]
    slots = asyncio.Semaphore(_LOGINS_AT_ONCE)

    async def log_in(one: _Expected) -> Violation | None:
        assert one.password_sealed is not None
        password = box.open(one.password_sealed, password_place(one.uuid))
        try:
            async with slots:
                await adapter.log_in(Tenant(name=one.engine_name, password=password, marker=marker(one.uuid)))
        except EngineError as error:
            if error.code in _TENANT_FULL or not await _is_active(one.uuid):
                return None
            return Violation(rule="active_unreachable", subject=str(one.uuid), detail=str(error))
        return None

    answers = await asyncio.gather(*map(log_in, active))
    known = {one.engine_name for one in recorded}
    orphans = await _still_there(adapter, [name for name in on_host if name not in known])
    return [*(_orphan(host, name) for name in orphans), *(answer for answer in answers if answer is not None)]


async def _is_active(database: UUID) -> bool:
    """Whether it still is; it may have been deleted while it was tried."""
    return bool(await fetch("SELECT 1 FROM databases WHERE uuid = $1 AND status = 'active'", database))


async def _still_there(adapter: EngineAdapter, names: list[str]) -> list[str]:
    """Those that a second look finds too: a database destroyed between the two looks had lost its record only."""
    if not names:
        return []
    present = {tenant.name for tenant in await adapter.list_tenants()}
    return [name for name in names if name in present]


def _orphan(host: _Host, name: str) -> Violation:
    detail = f"carries our marker on {host.address}, and no record names it"
    return Violation(rule="orphan_on_host", subject=name, detail=detail)
