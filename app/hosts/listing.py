"""Registered hosts with what they carry, for operators."""

import msgspec

from app.contracts.base import Engine
from app.engines.tls import TlsMode
from app.store.columns import columns_of
from app.store.session import fetch_all
from app.store.tables.hosts import EngineHost


class HostSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The most useful columns first: a narrow terminal shows those."""

    id: int
    flavour: str
    region: str
    host: str
    port: int
    databases: int
    capacity: int
    draining: bool
    connections: int
    open_connections: int
    """Sessions that were open at the last look; 0 before there was one."""
    connections_short: bool
    """The databases that have more than their share get no more for now."""
    connection_room: int
    """What the sum of its databases' connection limits may be."""
    connection_capacity: int
    """Sessions that tenants may have open together."""
    connection_overcommit: int
    """How often each of these connections may be allocated."""
    storage_gb: int | None
    """What its databases may take together; None where nobody said."""
    sick_reason: str | None
    tls: TlsMode
    ca: bool
    """Whether the server's certificate has to be of a CA of its own."""
    version: str
    engine: Engine
    extensions: list[str]
    """What tenants may use or add."""


async def list_hosts() -> list[HostSummary]:
    """Every registered host with what it carries."""
    return await fetch_all(
        HostSummary,
        f"""
        SELECT {columns_of(EngineHost, "h")},
               h.connection_capacity::bigint * h.connection_overcommit AS connection_room,
               coalesce(w.open, 0) AS open_connections, w.short_since IS NOT NULL AS connections_short,
               h.tls_ca IS NOT NULL AS ca, count(d.id) AS databases,
               coalesce(sum(d.connections) FILTER (WHERE d.status <> 'deleted'), 0)::bigint AS connections
        FROM engine_hosts h LEFT JOIN databases d ON d.host_id = h.id AND d.destroyed_at IS NULL
        LEFT JOIN host_connections w ON w.host_id = h.id
        WHERE h.removed_at IS NULL GROUP BY h.id, w.id ORDER BY h.id
        """,  # noqa: S608 - our own words
    )
