"""The rows of the registered engine hosts, as others read and lock them."""

import msgspec

from app.contracts.base import Engine
from app.core.errors import InvalidField
from app.engines.tls import TlsPolicy
from app.store.session import execute, fetch_all, fetch_exists, fetch_one, fetch_value, fetch_values


class Host(msgspec.Struct, frozen=True):
    id: int
    engine: Engine
    region: str
    address: str
    """`host:port`, for people."""


async def registered_hosts(region: str | None = None) -> list[Host]:
    """All registered hosts, or those of one region."""
    return await fetch_all(
        Host,
        "SELECT id, engine, region, host || ':' || port AS address FROM engine_hosts"
        " WHERE removed_at IS NULL AND ($1::text IS NULL OR region = $1) ORDER BY id",
        region,
    )


async def open_hosts(engine: Engine, region: str | None) -> list[int]:
    """The ids of the hosts that take new databases."""
    return await fetch_values(
        int,
        "SELECT id FROM engine_hosts WHERE engine = $1 AND ($2::text IS NULL OR region = $2) AND NOT draining"
        " AND coalesce(sick_until <= now(), true)",
        engine,
        region,
    )


async def lock_host(host_id: int) -> None:
    """Locks the host: nothing is placed there until the end of the transaction."""
    await execute("SELECT 1 FROM engine_hosts WHERE id = $1 FOR NO KEY UPDATE", host_id)


async def keep_host(host_id: int) -> bool:
    """Keeps the host registered until the end of the transaction. False for one that is removed."""
    # A removal, which locks the row FOR UPDATE, waits for this; a placement, with FOR NO KEY UPDATE, does not.
    return await fetch_exists("SELECT 1 FROM engine_hosts WHERE id = $1 AND removed_at IS NULL FOR KEY SHARE", host_id)


class ServedRegion(msgspec.Struct, frozen=True, kw_only=True):
    """A region in which an engine has hosts."""

    engine: Engine
    region: str
    open: bool
    """One of its hosts takes new databases."""
    extensions_json: str
    """For each host that does: what a tenant may add there."""

    @property
    def extensions(self) -> list[list[str]]:
        return msgspec.json.decode(self.extensions_json, type=list[list[str]])


async def list_served(engine: Engine | None = None) -> list[ServedRegion]:
    """The served regions, by engine and region. Hosts that were set aside are left out."""
    return await fetch_all(
        ServedRegion,
        """
        SELECT engine, region, bool_or(NOT draining) AS open,
               coalesce(jsonb_agg(to_jsonb(extensions)) FILTER (WHERE NOT draining), '[]')::text AS extensions_json
        FROM engine_hosts WHERE sick_until IS DISTINCT FROM 'infinity' AND ($1::text IS NULL OR engine = $1)
        GROUP BY engine, region ORDER BY engine, region
        """,
        engine,
    )


async def check_known(host: str) -> None:
    """Raises `InvalidField` for what is neither the id nor the `host:port` of a host, be it removed."""
    if not await fetch_exists("SELECT 1 FROM engine_hosts WHERE id::text = $1 OR host || ':' || port = $1", host):
        raise InvalidField("host", f"There is no host {host}.")


async def known_regions() -> list[str]:
    """The regions of all hosts that ever were registered."""
    return await fetch_values(str, "SELECT DISTINCT region FROM engine_hosts ORDER BY region")


async def is_served(engine: Engine, region: str) -> bool:
    """Whether the region has a host of this engine."""
    return await fetch_exists(
        "SELECT 1 FROM engine_hosts WHERE removed_at IS NULL AND engine = $1 AND region = $2", engine, region
    )


async def change_port(engine: Engine, host: str, port: int, *, last: int) -> None:
    """Records the new port of a server that stays the same: its databases are still on it."""
    await execute(
        "UPDATE engine_hosts SET port = $3 WHERE engine = $1 AND host = $2 AND port = $4", engine, host, port, last
    )


async def find_again(engine: Engine, host: str, port: int, region: str) -> None:
    """Records that a host of this region which was set aside is back at this port, wherever it listened before."""
    await execute(
        "UPDATE engine_hosts SET port = $3 WHERE engine = $1 AND host = $2 AND region = $4"
        " AND sick_until = 'infinity' AND NOT EXISTS"
        " (SELECT FROM engine_hosts WHERE engine = $1 AND host = $2 AND port = $3)",
        engine,
        host,
        port,
        region,
    )


async def is_draining(engine: Engine, host: str, port: int) -> bool:
    """Whether the host takes no new databases; False for one that is not registered."""
    draining = await fetch_value(
        bool, "SELECT draining FROM engine_hosts WHERE engine = $1 AND host = $2 AND port = $3", engine, host, port
    )
    return bool(draining)


_VERSIONS = "SELECT id, flavour, version, region, storage_gb FROM engine_hosts"


class HostVersion(msgspec.Struct, frozen=True):
    """What a host reported of itself when it was added or checked last."""

    id: int
    flavour: str
    version: str
    region: str
    storage_gb: int | None
    """What its databases may take together; None where nobody said."""


async def version_of(host_id: int) -> HostVersion:
    """The version of a host that databases lie on."""
    found = await fetch_one(HostVersion, _VERSIONS + " WHERE id = $1", host_id)
    assert found is not None, "databases refer to it"
    return found


async def host_versions() -> list[HostVersion]:
    """The versions of all registered hosts."""
    return await fetch_all(HostVersion, _VERSIONS + " WHERE removed_at IS NULL ORDER BY id")


async def served_regions() -> list[str]:
    """Every region that has a host."""
    return await fetch_values(str, "SELECT DISTINCT region FROM engine_hosts WHERE removed_at IS NULL ORDER BY region")


async def note_extensions(host_id: int, extensions: list[str]) -> None:
    """Records what a host's tenants may add to their databases, as the host was just asked."""
    await execute(
        "UPDATE engine_hosts SET extensions = $2 WHERE id = $1 AND extensions IS DISTINCT FROM $2", host_id, extensions
    )


async def offered_extensions() -> frozenset[str]:
    """What tenants of any host may use or add."""
    return frozenset(
        await fetch_values(str, "SELECT DISTINCT unnest(extensions) FROM engine_hosts WHERE removed_at IS NULL")
    )


async def tls_of(engine: Engine, host: str, port: int) -> TlsPolicy | None:
    """The TLS policy of the host that tenants know by this address; None when no such host is registered."""
    return await fetch_one(
        TlsPolicy,
        "SELECT tls AS mode, tls_ca AS ca FROM engine_hosts"
        " WHERE engine = $1 AND host = $2 AND port = $3 AND removed_at IS NULL",
        engine,
        host,
        port,
    )
