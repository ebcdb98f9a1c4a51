"""Open adapters to the registered hosts, shared by everything in one process."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from uuid import UUID

import msgspec

from app.contracts.base import Engine
from app.core.secrets import SecretBox, SecretLocation
from app.engines.base import AdminAddress, EngineAdapter
from app.engines.registry import open_adapter
from app.engines.tls import TlsMode, TlsPolicy
from app.store.sealed import SealedColumn
from app.store.session import fetch_one

AdapterFor = Callable[[int, int | None], AbstractAsyncContextManager[EngineAdapter]]
"""The adapter of a host, for a block that holds a slot of it for a team, by their ids."""


class HostAccess(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach a host, as its row has it."""

    id: int
    engine: Engine
    host: str
    port: int
    admin_sealed: bytes
    tls: TlsMode
    tls_ca: str | None
    installation: UUID

    def address(self, box: SecretBox) -> AdminAddress:
        """Raises `InvalidSecret`."""
        plain = box.open(self.admin_sealed, admin_place(self.engine, self.host, self.port))
        address = msgspec.json.decode(plain, type=AdminAddress)
        return msgspec.structs.replace(address, tls=TlsPolicy(mode=self.tls, ca=self.tls_ca))


def admin_place(engine: Engine, host: str, port: int) -> SecretLocation:
    """Where a host's administrator address lies sealed: bound to the host's public address."""
    return SecretLocation("engine_hosts", "admin_sealed", f"{engine}:{host}:{port}")


SEALED_ADMIN = SealedColumn(
    table="engine_hosts", column="admin_sealed", row="s.engine || ':' || s.host || ':' || s.port"
)


class _SealedAdmin(msgspec.Struct, frozen=True, kw_only=True):
    engine: Engine
    host: str
    port: int
    admin_sealed: bytes


async def check_keys(box: SecretBox) -> None:
    """Raises `InvalidSecret` when these are not the keys that the running processes open secrets with: what is sealed
    with others stays closed to them."""
    # The oldest one in use: every start of an embedded stack seals that anew.
    oldest = await fetch_one(
        _SealedAdmin,
        "SELECT engine, host, port, admin_sealed FROM engine_hosts WHERE removed_at IS NULL"
        " ORDER BY sick_until IS NOT DISTINCT FROM 'infinity', id LIMIT 1",
    )
    if oldest is not None:
        box.open(oldest.admin_sealed, admin_place(oldest.engine, oldest.host, oldest.port))


class HostRemoved(LookupError):
    """The host is registered no more: nothing of the service is there, and nobody knows how to get in."""


class Adapters:
    """Opens each host's adapter at its first use, and anew when how to reach it was changed."""

    def __init__(self, box: SecretBox) -> None:
        self._box = box
        self._open: dict[int, tuple[HostAccess, EngineAdapter]] = {}

    async def of_host(self, host_id: int) -> EngineAdapter:
        """Raises `HostRemoved`, for an unknown host too."""
        access = await fetch_one(
            HostAccess,
            "SELECT h.id, h.engine, h.host, h.port, h.admin_sealed, h.tls, h.tls_ca, i.id AS installation"
            " FROM engine_hosts h, installation i WHERE h.id = $1 AND h.removed_at IS NULL",
            host_id,
        )
        if access is None:
            raise HostRemoved(f"engine host {host_id} is not registered, or was removed")
        return await self.of(access)

    async def of(self, access: HostAccess) -> EngineAdapter:
        """The same for a caller that has read the host's row already."""
        known = self._open.get(access.id)
        if known is not None and known[0] == access:
            return known[1]
        adapter = open_adapter(access.engine, access.address(self._box), access.installation.hex)
        self._open[access.id] = (access, adapter)
        if known is not None:
            await known[1].close()
        return adapter

    async def close(self) -> None:
        for _, adapter in self._open.values():
            await adapter.close()
        self._open.clear()
