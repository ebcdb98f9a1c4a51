"""Registering the servers that hold tenant databases. Operators do so, on the command line."""

import ipaddress
from collections.abc import Sequence
from datetime import datetime

import msgspec

from app.audit.drafts import note
from app.audit.events import audited
from app.contracts.base import Engine
from app.contracts.queues import is_region_code
from app.core.errors import InvalidField, NotFound
from app.core.secrets import SecretBox
from app.engines.base import AdminAddress, EngineError, HostFacts
from app.engines.registry import open_adapter
from app.engines.tls import PLAIN, TlsMode, TlsPolicy
from app.hosts.adapters import admin_place
from app.store.columns import columns_of
from app.store.session import execute, fetch_all, fetch_exists, fetch_one, fetch_value, fetch_values
from app.store.tables.hosts import EngineHost

DEFAULT_CAPACITY = 1000
"""Databases on one host, unless the operator says otherwise."""
DEFAULT_OVERCOMMIT = 10
"""How often each connection of a new host may be allocated, unless the operator says otherwise."""
MOST_OVERCOMMIT = 1000
MOST_STORAGE_GB = 1_000_000


class NewHost(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator registers."""

    engine: Engine
    region: str
    admin: AdminAddress
    public_host: str
    public_port: int
    capacity: int = DEFAULT_CAPACITY
    connection_capacity: int | None = None
    """Sessions that tenants may have open together; what the server admits, unless given."""
    connection_overcommit: int | None = None
    """How often each of them may be allocated. Unless given, a registered host keeps what it has, and a new one gets
    `DEFAULT_OVERCOMMIT`."""
    storage_gb: int | None = None
    """What its databases may take together. Unless given, a registered host keeps what it has."""


class HostAdded(msgspec.Struct, frozen=True, kw_only=True):
    host_id: int
    flavour: str
    version: str
    shortcomings: tuple[str, ...]
    """What this host lacks and what follows, a sentence each."""


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
    """Those that have more than their share get no more for now."""
    connection_room: int
    """What the sum of its databases' connection limits may be."""
    connection_capacity: int
    """Sessions that tenants may have open together."""
    connection_overcommit: int
    """How often each of them may be allocated."""
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


class ExaminedHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host that is hardened and can serve."""

    new: NewHost
    facts: HostFacts
    extensions: list[str]
    """What its tenants may add."""
    shortcomings: tuple[str, ...]


async def add_host(box: SecretBox, new: NewHost, extensions: Sequence[str] = ()) -> HostAdded:
    """Checks, hardens and registers a host; one that is registered already is brought up to date. `extensions` are an
    operator's list for PostgreSQL.

    Raises `InvalidField` when the server can't serve, in the words of its adapter.
    """
    examined = await examine(new, extensions)
    async with audited():
        return await register(box, examined)


async def examine(new: NewHost, extensions: Sequence[str] = (), *, field: str = "admin_dsn") -> ExaminedHost:
    """Checks and hardens a host, which may be repeated. Raises as `add_host` does; `field` is what it then names."""
    _check(new)
    adapter = open_adapter(new.engine, new.admin)
    try:
        open_doors = await adapter.harden_host(extensions)
        facts = await adapter.inspect_host()
        present = await adapter.extensions()
    except EngineError as error:
        raise InvalidField(field, f"The host can't be used: {error}") from error
    finally:
        await adapter.close()
    shortcomings = tuple(dict.fromkeys((*facts.shortcomings, *open_doors)))
    return ExaminedHost(new=new, facts=facts, extensions=present, shortcomings=shortcomings)


async def register(box: SecretBox, examined: ExaminedHost) -> HostAdded:
    """In the transaction of the change. Raises `InvalidField` for a host that is registered in another region."""
    new, facts = examined.new, examined.facts
    host_id = await _write(box, new, facts)
    await note_extensions(host_id, examined.extensions)
    note(subject=("host", host_id), changes={"address": (None, f"{new.public_host}:{new.public_port}")})
    return HostAdded(host_id=host_id, flavour=facts.flavour, version=facts.version, shortcomings=examined.shortcomings)


async def note_extensions(host_id: int, extensions: list[str]) -> None:
    """What a host's tenants may add to their databases, as it was just asked."""
    await execute(
        "UPDATE engine_hosts SET extensions = $2 WHERE id = $1 AND extensions IS DISTINCT FROM $2", host_id, extensions
    )


async def offered_extensions() -> frozenset[str]:
    """What tenants of any host may use or add."""
    return frozenset(
        await fetch_values(str, "SELECT DISTINCT unnest(extensions) FROM engine_hosts WHERE removed_at IS NULL")
    )


async def tls_of(engine: Engine, host: str, port: int) -> TlsPolicy | None:
    """Of the host that tenants know by this address; None when none is registered."""
    return await fetch_one(
        TlsPolicy,
        "SELECT tls AS mode, tls_ca AS ca FROM engine_hosts"
        " WHERE engine = $1 AND host = $2 AND port = $3 AND removed_at IS NULL",
        engine,
        host,
        port,
    )


def usual_tls(admin_host: str) -> TlsPolicy:
    """For a host of which nothing is said: the server's certificate is verified, unless the way to it doesn't leave
    this machine."""
    return PLAIN if _is_loopback(admin_host) else TlsPolicy(mode=TlsMode.VERIFY_FULL)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check(new: NewHost) -> None:
    if not 1 <= new.public_port <= 65_535:
        raise InvalidField("public_port", "Expected a port from 1 to 65535.")
    if new.capacity < 1:
        raise InvalidField("capacity", "Expected at least 1.")
    if new.connection_capacity is not None and new.connection_capacity < 1:
        raise InvalidField("connection_capacity", "Expected at least 1.")
    if new.connection_overcommit is not None:
        _check_overcommit(new.connection_overcommit)
    if new.storage_gb is not None:
        _check_storage(new.storage_gb)
    if not is_region_code(new.region):
        raise InvalidField("region", "Expected a region code such as us-east-1.")


def _check_overcommit(times: int) -> None:
    if not 1 <= times <= MOST_OVERCOMMIT:
        raise InvalidField("connection_overcommit", f"Expected 1 to {MOST_OVERCOMMIT}.")


def _check_storage(gigabytes: int) -> None:
    if not 1 <= gigabytes <= MOST_STORAGE_GB:
        raise InvalidField("storage_gb", f"Expected 1 to {MOST_STORAGE_GB}.")


async def _write(box: SecretBox, new: NewHost, facts: HostFacts) -> int:
    sealed = box.seal(new.admin.sealable().decode(), admin_place(new.engine, new.public_host, new.public_port))
    host_id = await fetch_value(
        int,
        """
        INSERT INTO engine_hosts (engine, flavour, version, region, host, port, admin_sealed, tls, tls_ca,
                                  capacity, connection_capacity, connection_overcommit, storage_gb)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, coalesce($12::integer, $13), $14)
        ON CONFLICT (engine, host, port) DO UPDATE SET
            flavour = excluded.flavour, version = excluded.version, admin_sealed = excluded.admin_sealed,
            tls = excluded.tls, tls_ca = excluded.tls_ca,
            capacity = excluded.capacity, connection_capacity = excluded.connection_capacity,
            connection_overcommit = coalesce($12::integer, engine_hosts.connection_overcommit),
            storage_gb = coalesce(excluded.storage_gb, engine_hosts.storage_gb),
            region = excluded.region, draining = false, sick_until = NULL, sick_reason = NULL, removed_at = NULL
        WHERE engine_hosts.region = excluded.region OR engine_hosts.removed_at IS NOT NULL
        RETURNING id
        """,
        new.engine,
        facts.flavour,
        facts.version,
        new.region,
        new.public_host,
        new.public_port,
        sealed,
        new.admin.tls.mode.value,
        new.admin.tls.ca,
        new.capacity,
        new.connection_capacity or facts.max_connections,
        new.connection_overcommit,
        DEFAULT_OVERCOMMIT,
        new.storage_gb,
    )
    if host_id is None:
        raise InvalidField("region", "This host is registered in another region; a host doesn't move.")
    return host_id


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


async def served_regions() -> list[str]:
    """Every region that has a host."""
    return await fetch_values(str, "SELECT DISTINCT region FROM engine_hosts WHERE removed_at IS NULL ORDER BY region")


async def set_aside(engine: Engine, host: str, port: int) -> None:
    """Counts a host as failed until it is added again: nothing new goes there, nothing that waits there is given out,
    and the catalog doesn't show it."""
    await execute(
        "UPDATE engine_hosts SET sick_until = 'infinity', sick_reason = 'not a part of the stack that runs'"
        " WHERE engine = $1 AND host = $2 AND port = $3",
        engine,
        host,
        port,
    )


async def drain_host(host_id: int) -> None:
    """No new database goes there; those that are there stay. Raises `NotFound`."""
    await _set_draining(host_id, True)


async def change_overcommit(host_id: int, times: int) -> int:
    """How often each of its connections may be allocated from now on; returns how often it was. What is allocated
    stays so. Belongs in a transaction. Raises `NotFound`, `InvalidField`."""
    _check_overcommit(times)
    before = await fetch_value(
        int, "SELECT connection_overcommit FROM engine_hosts WHERE id = $1 AND removed_at IS NULL FOR UPDATE", host_id
    )
    if before is None:
        raise NotFound("engine host")
    await execute("UPDATE engine_hosts SET connection_overcommit = $2 WHERE id = $1", host_id, times)
    return before


async def change_storage(host_id: int, gigabytes: int | None) -> int | None:
    """What its databases may take together from now on, None for no bound; returns what it was. What they take by now
    stays. Belongs in a transaction. Raises `NotFound`, `InvalidField`."""
    if gigabytes is not None:
        _check_storage(gigabytes)
    before = await fetch_one(
        _Storage, "SELECT storage_gb FROM engine_hosts WHERE id = $1 AND removed_at IS NULL FOR UPDATE", host_id
    )
    if before is None:
        raise NotFound("engine host")
    await execute("UPDATE engine_hosts SET storage_gb = $2 WHERE id = $1", host_id, gigabytes)
    return before.storage_gb


class _Storage(msgspec.Struct, frozen=True):
    storage_gb: int | None


async def undrain_host(host_id: int) -> None:
    """New databases may go there again. Raises `NotFound`."""
    await _set_draining(host_id, False)


async def remove_host(host_id: int) -> None:
    """Forgets a host that carries nothing any more, and how to get in. Its row stays for the destroyed databases that
    name it; adding the host again brings it back. Belongs in a transaction. Raises `NotFound`, or `InvalidField` saying
    what it still carries."""
    # Whoever places a database there has this row locked until the database's row is written.
    if not await fetch_exists("SELECT 1 FROM engine_hosts WHERE id = $1 AND removed_at IS NULL FOR UPDATE", host_id):
        raise NotFound("engine host")
    carried = await fetch_one(_Carried, _CARRIED, host_id)
    assert carried is not None, "counts have always one row"
    if carried.live or carried.deleted or carried.pooled:
        raise InvalidField("host_id", _still_carries(carried))
    await execute(
        "UPDATE engine_hosts SET removed_at = now(), admin_sealed = NULL, draining = true, sick_until = 'infinity',"
        " sick_reason = 'removed' WHERE id = $1",
        host_id,
    )


class _Carried(msgspec.Struct, frozen=True, kw_only=True):
    live: int
    deleted: int
    pooled: int
    last_destroyed_at: datetime | None


_CARRIED = """
SELECT count(*) FILTER (WHERE d.team_id IS NOT NULL AND d.status <> 'deleted') AS live,
       count(*) FILTER (WHERE d.team_id IS NOT NULL AND d.status = 'deleted') AS deleted,
       count(*) FILTER (WHERE d.team_id IS NULL) AS pooled,
       max(d.destroy_at) FILTER (WHERE d.team_id IS NOT NULL AND d.status = 'deleted') AS last_destroyed_at
FROM engine_hosts h JOIN databases d ON d.host_id = h.id WHERE h.id = $1 AND d.destroyed_at IS NULL
"""


def _still_carries(carried: _Carried) -> str:
    parts = []
    if carried.live:
        parts.append(f"{carried.live} databases of teams")
    if carried.deleted:
        parts.append(f"{carried.deleted} deleted ones that are kept until {carried.last_destroyed_at:%Y-%m-%d %H:%M}Z")
    if carried.pooled:
        parts.append(f"{carried.pooled} of the warm pool, which go when the host is drained")
    return f"The host still carries {', '.join(parts)}."


async def _set_draining(host_id: int, draining: bool) -> None:
    changed = await execute(
        "UPDATE engine_hosts SET draining = $2 WHERE id = $1 AND removed_at IS NULL", host_id, draining
    )
    if not changed:
        raise NotFound("engine host")
