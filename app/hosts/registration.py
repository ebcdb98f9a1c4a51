"""Registering the servers that hold tenant databases."""

import ipaddress
from collections.abc import Sequence

import msgspec

from app.audit.drafts import note
from app.audit.events import audited
from app.contracts.base import Engine
from app.contracts.queues import is_region_code
from app.core.errors import InvalidField
from app.core.secrets import SecretBox
from app.engines.base import AdminAddress, EngineError, HostFacts
from app.engines.registry import open_adapter
from app.engines.tls import PLAIN, TlsMode, TlsPolicy
from app.hosts.adapters import admin_place
from app.hosts.changes import check_overcommit, check_storage
from app.hosts.records import note_extensions
from app.store.session import fetch_value

DEFAULT_CAPACITY = 1000
"""The most databases on one host, unless the operator says otherwise."""
DEFAULT_OVERCOMMIT = 10
"""How often each connection of a new host may be allocated, unless the operator says otherwise."""


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
    """Registers an examined host, in the transaction of the change. Raises `InvalidField` for a host that is registered
    in another region."""
    new, facts = examined.new, examined.facts
    host_id = await _write(box, new, facts)
    await note_extensions(host_id, examined.extensions)
    note(subject=("host", host_id), changes={"address": (None, f"{new.public_host}:{new.public_port}")})
    return HostAdded(host_id=host_id, flavour=facts.flavour, version=facts.version, shortcomings=examined.shortcomings)


def usual_tls(admin_host: str) -> TlsPolicy:
    """The TLS policy of a host for which none is given: the server's certificate is verified, unless the way to it
    doesn't leave this machine."""
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
        check_overcommit(new.connection_overcommit)
    if new.storage_gb is not None:
        check_storage(new.storage_gb)
    if not is_region_code(new.region):
        raise InvalidField("region", "Expected a region code such as us-east-1.")


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
            region = excluded.region, draining = engine_hosts.draining AND engine_hosts.removed_at IS NULL,
            sick_until = NULL, sick_reason = NULL, removed_at = NULL
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
