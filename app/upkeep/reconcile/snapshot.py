"""One host and our records of it, read at the same time."""

from datetime import datetime, timedelta

import msgspec

from app.blueprints.applications.records import scratch_names
from app.databases.hosted import RecordedDatabase, recorded_on
from app.engines.base import EngineAdapter, FoundTenant
from app.hosts.records import Host
from app.store.installation import read_installation

PATIENCE = timedelta(seconds=60)
"""How long a change may take before it counts as stuck."""


class HostSnapshot(msgspec.Struct, frozen=True):
    host: Host
    found: dict[str, FoundTenant]
    """By name."""
    recorded: dict[str, RecordedDatabase]
    """By the name on the host."""
    installation: str
    """The id of our installation, as in markers."""
    now: datetime
    """The time of the snapshot, by our own database's clock."""


async def take_snapshot(host: Host, adapter: EngineAdapter) -> HostSnapshot:
    """Raises `EngineError`. The host is read first, so that what is created after that isn't taken for an orphan."""
    found = {tenant.name: tenant for tenant in await adapter.list_tenants()}
    recorded = await recorded_on(host.id, PATIENCE)
    # Rehearsal copies of blueprints: the application removes its own, also after a crash.
    for name in await scratch_names():
        found.pop(name, None)
    ours = await read_installation()
    return HostSnapshot(host, found, {one.engine_name: one for one in recorded}, ours.id.hex, ours.now)
