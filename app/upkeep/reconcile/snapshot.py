"""One host and our records of it, read at the same time."""

from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from app.contracts.base import DatabaseStatus, Engine
from app.core.ids import marker
from app.engines.base import EngineAdapter, FoundTenant
from app.store.session import fetch, fetch_all

PATIENCE = timedelta(seconds=60)
"""How long a change may take before it counts as stuck."""


class Host(msgspec.Struct, frozen=True):
    id: int
    engine: Engine
    region: str
    address: str
    """`host:port`, for display."""


class RecordedDatabase(msgspec.Struct, frozen=True):
    """A database that may have left something on its host."""

    uuid: UUID
    status: DatabaseStatus
    engine_name: str
    password_sealed: bytes | None
    provisioned: bool
    revoked: bool
    frozen: bool
    """It may not write."""
    changing: bool
    """A pause, a freeze or its end is not applied on the engine yet."""
    settled: bool
    """Nothing of it has changed for a while, so that no step is running."""
    connections: int
    """The tenant's connection limit."""
    refused: bool
    """Its credentials were refused, and are not known to work again."""
    leaving: bool
    """Its destruction is due."""

    @property
    def marker(self) -> str:
        return marker(self.uuid)


class HostSnapshot(msgspec.Struct, frozen=True):
    host: Host
    found: dict[str, FoundTenant]
    """By name."""
    recorded: dict[str, RecordedDatabase]
    """By the name on the host."""
    installation: str
    """The id of our installation, as in markers."""
    now: datetime
    """By our own database's clock."""


_RECORDED = """
SELECT uuid, status, engine_name, password_sealed, provisioned_at IS NOT NULL AS provisioned,
       revoked_at IS NOT NULL AS revoked, frozen_at IS NOT NULL AS frozen,
       status <> 'deleted' AND access_applied < access_revision AS changing,
       (status = 'deleted' OR access_applied >= access_revision)
           AND greatest(updated_at, access_changed_at) < now() - $2::interval AS settled,
       connections, credentials_refused_at IS NOT NULL AS refused,
       coalesce(destroy_at <= now(), false) AS leaving
FROM databases WHERE host_id = $1 AND destroyed_at IS NULL
"""


async def hosts() -> list[Host]:
    """All registered hosts."""
    return await fetch_all(
        Host,
        "SELECT id, engine, region, host || ':' || port AS address FROM engine_hosts"
        " WHERE removed_at IS NULL ORDER BY id",
    )


async def take_snapshot(host: Host, adapter: EngineAdapter) -> HostSnapshot:
    """Raises `EngineError`. The host is read first, so that what is created after that isn't taken for an orphan."""
    found = {tenant.name: tenant for tenant in await adapter.list_tenants()}
    recorded = await fetch_all(RecordedDatabase, _RECORDED, host.id, PATIENCE)
    # Rehearsal copies of blueprints: the application removes its own, also after a crash.
    for row in await fetch("SELECT scratch_name FROM blueprint_applications WHERE scratch_name IS NOT NULL"):
        found.pop(row["scratch_name"], None)
    [ours] = await fetch("SELECT id, now() AS now FROM installation")
    return HostSnapshot(host, found, {one.engine_name: one for one in recorded}, ours["id"].hex, ours["now"])
